// Limits and usage of an application.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { BrowserLimits, Limits } from '../../../contract/limits.ts';
import { call } from '../api/call.ts';
import { applicationsQuery, limitsQuery, usageQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { TextField } from '../ui/form.tsx';
import { Meter } from '../ui/meter.tsx';
import { Facts, Page, Panel } from '../ui/page.tsx';
import { FormError, LoadError, LoadingRows } from '../ui/states.tsx';
import { bytesWords } from '../ui/time.tsx';

type LimitName = keyof BrowserLimits;

const GIB = 1024 ** 3;

interface Field {
  readonly label: string;
  readonly hint: string;
  /**
   * The factor from the unit of the field to the unit of the API: 60 if the field is in minutes and the API in seconds.
   */
  readonly multiplier: number;
}

const FIELDS: Readonly<Record<LimitName, Field>> = {
  maxConcurrent: { label: 'Concurrent sessions', hint: 'Includes sessions that are starting.', multiplier: 1 },
  maxCreatesPerMinute: { label: 'Creates per minute', hint: 'In any period of 60 seconds.', multiplier: 1 },
  maxWaiting: { label: 'Queued creates', hint: 'Creates sent with Prefer: wait.', multiplier: 1 },
  defaultTimeout: { label: 'Default time limit, minutes', hint: 'For sessions without a timeout.', multiplier: 60 },
  maxTimeout: { label: 'Maximum time limit, minutes', hint: 'At most 360.', multiplier: 60 },
  maxStoredBytes: { label: 'Stored data, GB', hint: 'Total of the application.', multiplier: GIB },
  maxUploadBytes: { label: 'Upload size, GB', hint: 'Size of one file.', multiplier: GIB },
  egressBytesPerDay: {
    label: 'Network bytes per day, GB',
    hint: 'Sent and received. A day begins at midnight UTC.',
    multiplier: GIB,
  },
};
const LIMIT_NAMES = Object.keys(FIELDS) as LimitName[]; // Object.keys() returns strings.
const LIMIT_FIELDS = LIMIT_NAMES.map(member => ({ member, ...FIELDS[member] }));

export function LimitsPage({ app }: { readonly app: string }) {
  const { data, error, refetch } = useQuery({ ...limitsQuery(app), refetchInterval: 5_000 });
  return (
    <Page title="Limits and usage" about="Checked when a session is created. Operator limits take precedence.">
      {error && !data ? (
        <LoadError error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Panel>
          <LoadingRows contentLabel="limits" rows={3} />
        </Panel>
      ) : (
        <div className="grid gap-5 lg:grid-cols-[minmax(0,1fr)_minmax(0,1.3fr)] lg:items-start">
          <div className="grid gap-5">
            <CurrentUsage limits={data} />
            <TotalUsage app={app} />
          </div>
          <LimitsForm key={data.revision} app={app} limits={data} />
        </div>
      )}
    </Page>
  );
}

const toGib = (bytes: number): number => Number((bytes / GIB).toFixed(2));

const CurrentUsage = ({ limits: { usage, effective } }: { readonly limits: Limits }) => (
  <Panel title="Now">
    <Meter label="Sessions" used={usage.browsers.maxConcurrent} limit={effective.browsers.maxConcurrent} />
    <Meter
      label="Creates in the last minute"
      used={usage.browsers.maxCreatesPerMinute}
      limit={effective.browsers.maxCreatesPerMinute}
    />
    <Meter label="Queued creates" used={usage.browsers.maxWaiting} limit={effective.browsers.maxWaiting} />
    <Meter
      label="Network bytes today, in GB"
      used={toGib(usage.browsers.egressBytesPerDay)}
      limit={toGib(effective.browsers.egressBytesPerDay)}
    />
  </Panel>
);

function TotalUsage({ app }: { readonly app: string }) {
  const { data } = useQuery(usageQuery(app));
  if (!data) return null;
  const minutes = data.browserMinutes;
  return (
    <Panel title="Total usage">
      <Facts
        facts={[
          ['Browser time', minutes < 120 ? `${minutes.toFixed(1)} minutes` : `${(minutes / 60).toFixed(1)} hours`],
          ['Through proxies', bytesWords(data.proxyBytes)],
        ]}
      />
    </Panel>
  );
}

const formatInUnits = (value: number, unitSize: number): string => String(Number((value / unitSize).toFixed(2)));

function LimitsForm({ app, limits }: { readonly app: string; readonly limits: Limits }) {
  const { configured, ceiling, revision } = limits;
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(
      LIMIT_FIELDS.map(({ member, multiplier }) => [member, formatInUnits(configured.browsers[member], multiplier)]),
    ),
  );
  const { data: applications } = useQuery(applicationsQuery);
  const isOwner = applications?.data.find(({ id }) => id === app)?.role === 'owner';
  const client = useQueryClient();
  const isChanged = LIMIT_FIELDS.some(
    ({ member, multiplier }) => texts[member] !== formatInUnits(configured.browsers[member], multiplier),
  );
  const save = useMutation({
    mutationFn: () => {
      const browsers = Object.fromEntries(
        LIMIT_FIELDS.map(({ member, multiplier }) => [
          member,
          texts[member] === formatInUnits(configured.browsers[member], multiplier)
            ? configured.browsers[member]
            : Math.round(Number(texts[member]) * multiplier),
        ]),
      );
      return call('replaceLimits', {
        params: { appId: app },
        body: { browsers },
        headers: { 'if-match': `"${revision}"` },
      });
    },
    onSuccess: next => client.setQueryData(limitsQuery(app).queryKey, next),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Panel title="Configured">
      <form onSubmit={submit} className="grid gap-4 p-4">
        <div className="grid gap-4 sm:grid-cols-2">
          {LIMIT_FIELDS.map(({ member, label, hint, multiplier }) => {
            const operatorMax = ceiling.browsers[member];
            return (
              <TextField
                key={member}
                label={label}
                hint={
                  operatorMax === undefined
                    ? hint
                    : `${hint} The operator allows at most ${formatInUnits(operatorMax, multiplier)}.`
                }
                type="number"
                min={0}
                step="any"
                value={texts[member] ?? ''}
                disabled={!isOwner}
                onChange={event => setTexts({ ...texts, [member]: event.target.value })}
                required
              />
            );
          })}
        </div>
        <FormError error={save.error} />
        <div className="flex items-center justify-end gap-3">
          <p className="mr-auto text-xs text-soft">
            {isOwner
              ? 'Takes effect for the next session. Running sessions are not ended.'
              : 'Only owners may change limits.'}
          </p>
          <Button type="submit" look="primary" busy={save.isPending} disabled={!isChanged}>
            Save
          </Button>
        </div>
      </form>
    </Panel>
  );
}
