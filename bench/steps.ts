// The duration of each step of a create and a release, from the server's own spans. Uses a separate server, because
// tracing costs time that must not affect the other figures.
import { systemClock } from '../server/kit/clock.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { liftLimits } from '../tests/harness/limits.ts';
import { openOtlpReceiver, type ReceivedSpan } from '../tests/harness/otlp-receiver.ts';
import { TestServer } from '../tests/harness/server.ts';
import { untilRefilled } from './lifecycle.ts';
import { type Summary, summaryOf } from './statistics.ts';

const EXPORT_WAIT_MS = 7_000;
/** The label of the time that no span covers: HTTP, the credential, limits, reading the row, the response. */
const REST_LABEL = 'the rest: HTTP, credential, limits, answer';

export interface StepFigure {
  readonly operation: string;
  readonly step: string;
  readonly ms: Summary;
}

export async function measureSteps(rounds: number, slots: number): Promise<readonly StepFigure[]> {
  const receiver = await openOtlpReceiver();
  const env = { BERTH_SLOTS: String(slots), BERTH_WARM: undefined, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  const server = new TestServer({ env, isMeasured: true }, await claimFreePort());
  try {
    await server.start();
    await liftLimits(server);
    for (let round = 0; round < rounds; round++) {
      await untilRefilled(server);
      const session = await server.createSession();
      await server.release(session.id);
    }
    await systemClock.sleep(EXPORT_WAIT_MS);
    return ['createSession', 'updateSession'].flatMap(operation => stepsOf(operation, receiver.spans));
  } finally {
    await server.close();
    receiver.close();
  }
}

/** Returns the steps in the order in which they began. The first round is omitted as warm-up. */
function stepsOf(operation: string, spans: readonly ReceivedSpan[]): StepFigure[] {
  const rootSpans = spans.filter(span => span.name === operation).slice(1);
  const childSpansOf = ({ spanId }: ReceivedSpan): ReceivedSpan[] => spans.filter(span => span.parentSpanId === spanId);
  const names = [
    ...new Set(
      rootSpans
        .flatMap(childSpansOf)
        .sort(byStart)
        .map(({ name }) => name),
    ),
  ];
  const figureOf = (step: string, ms: (root: ReceivedSpan) => number): StepFigure => ({
    operation,
    step,
    ms: summaryOf(rootSpans.map(ms)),
  });
  const sum = (childSpans: readonly ReceivedSpan[]): number =>
    childSpans.reduce((total, part) => total + msOf(part), 0);
  return [
    ...names.map(name => figureOf(name, whole => sum(childSpansOf(whole).filter(part => part.name === name)))),
    figureOf(REST_LABEL, whole => msOf(whole) - sum(childSpansOf(whole))),
    figureOf('whole', msOf),
  ];
}

const msOf = ({ beganNs, endedNs }: ReceivedSpan): number => Number(endedNs - beganNs) / 1e6;

const byStart = (one: ReceivedSpan, other: ReceivedSpan): number => Number(one.beganNs - other.beganNs);
