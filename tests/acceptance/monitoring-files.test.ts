// The Grafana dashboard and the Prometheus alerts in deploy/: their shape, and that a running server has every metric
// that they name.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Type from 'typebox';
import Value from 'typebox/value';
import { parse } from 'yaml';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';

const strict = { additionalProperties: false } as const;
const Text = Type.String({ minLength: 1 });
const Source = Type.Object({ type: Type.Literal('prometheus'), uid: Type.Literal('${datasource}') }, strict);
const Target = Type.Object(
  { refId: Type.String({ pattern: '^[A-Z]$' }), datasource: Source, expr: Text, legendFormat: Text },
  strict,
);
const Size = Type.Integer({ minimum: 0, maximum: 24 });
const Panel = Type.Object(
  {
    ...{
      id: Type.Integer({ minimum: 1 }),
      type: Type.Literal('timeseries'),
      title: Text,
      description: Text,
      datasource: Source,
    },
    gridPos: Type.Object({ h: Size, w: Size, x: Size, y: Type.Integer({ minimum: 0 }) }, strict),
    fieldConfig: Type.Object(
      { defaults: Type.Object({ unit: Text, min: Type.Number() }, strict), overrides: Type.Array(Type.Object({})) },
      strict,
    ),
    ...{ options: Type.Object({}), targets: Type.Array(Target, { minItems: 1 }) },
  },
  strict,
);
/** The fields that Grafana's dashboard model requires, and the optional fields that our dashboard uses. */
const Dashboard = Type.Object(
  {
    ...{ uid: Text, title: Text, description: Text, tags: Type.Array(Text), timezone: Type.String(), refresh: Text },
    ...{ schemaVersion: Type.Integer({ minimum: 36 }), version: Type.Integer(), editable: Type.Boolean() },
    time: Type.Object({ from: Text, to: Text }, strict),
    templating: Type.Object({ list: Type.Array(Type.Object({ name: Text, type: Text, query: Text })) }, strict),
    annotations: Type.Object({ list: Type.Array(Type.Object({})) }, strict),
    panels: Type.Array(Panel, { minItems: 5 }),
  },
  strict,
);
const Duration = Type.String({ pattern: '^([0-9]+(ms|s|m|h|d|w|y))+$' });
const Texts = Type.Record(Type.String({ pattern: '^[a-zA-Z_][a-zA-Z0-9_]*$' }), Type.String());
/** A file of alerting rules, as Prometheus documents it. */
const Rules = Type.Object(
  {
    groups: Type.Array(
      Type.Object(
        {
          name: Text,
          interval: Type.Optional(Duration),
          rules: Type.Array(
            Type.Object({ alert: Text, expr: Text, for: Duration, labels: Texts, annotations: Texts }, strict),
            { minItems: 1 },
          ),
        },
        strict,
      ),
    ),
  },
  strict,
);

const readDeployFile = (path: string): string => readFileSync(join(CHECKOUT, 'deploy', path), 'utf8');
const assertSchema = <Schema extends Type.TSchema>(schema: Schema, value: unknown): Type.Static<Schema> => {
  assert.deepEqual(Value.Errors(schema, value), []);
  // `Value.Parse` is not used: comparing its type with `Static` takes the compiler two seconds.
  if (!Value.Check(schema, value))
    throw new Error('the value does not match the schema, but the schema reports no errors');
  return value;
};
const dashboard = assertSchema(Dashboard, JSON.parse(readDeployFile('grafana/berth-dashboard.json')));
const rules = assertSchema(Rules, parse(readDeployFile('prometheus/berth-alerts.yaml'))).groups.flatMap(
  group => group.rules,
);
const expressions = [
  ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ...dashboard.templating.list.map(({ query }) => query).filter(query => query.includes('(')),
  ...rules.map(({ expr }) => expr),
];

const server = await startServer({ env: { BERTH_ENGINE: LIGHT_ENGINE } });

test('a running server exports every metric that the Grafana panels and the Prometheus alerts use', async () => {
  await server.release((await server.createSession()).id);
  const { text } = await server.fetchFromOperator<string>('/metrics');
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]));
  const metricNames = new Set(expressions.flatMap(expr => expr.match(/\b(berth|process|nodejs)_\w+/g) ?? []));
  assert.ok(metricNames.size >= 12);
  for (const name of metricNames) {
    const [, base = name] = /^(.+)_(bucket|count|sum)$/.exec(name) ?? [];
    assert.equal(types.has(name) || types.get(base) === 'histogram', true, name);
  }
});

test('Grafana panels have unique ids, and Prometheus alerts have unique names, a severity and a description', () => {
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, labels, annotations } of rules) {
    assert.match(labels.severity ?? '', /^(critical|warning)$/, alert);
    assert.ok(annotations.summary && annotations.description, alert);
  }
});
