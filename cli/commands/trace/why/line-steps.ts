/**
 * Makes the steps that explain one line of a trace, from the judge's record of the line. A step is a sentence with a
 * kind, a code, and the section of a document that it rests on. proto/why/ makes the steps about the power model, the
 * rules and uplinks (messages of locks); this file adds those about lines. Pure.
 */
import { compareKeys, type Finding, type UplinkKey } from '../../../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import type { TraceFinding } from '../../../../proto/trace/findings.js';
import { connectSteps, disconnectSteps, sentCommandSteps } from '../../../../proto/why/connection.js';
import { afterMomentSteps, believedStep, lastConnectionEndStep, lastUplinkStep } from '../../../../proto/why/moment.js';
import { silenceStep } from '../../../../proto/why/silence.js';
import { SECTIONS, step, type WhyStep } from '../../../../proto/why/step.js';
import { brokenSteps, uplinkCase, uplinkSteps } from '../../../../proto/why/uplink.js';
import type { JudgedLine } from './judged-line.js';

/** What is known about a line and one lock. */
export interface ExplainedLine {
  readonly line: number;
  readonly atMs: number;
  readonly judged: JudgedLine;
  /** The findings of `trace check` that name this line and lock. */
  readonly findings: readonly TraceFinding[];
}

/** All steps, those about broken rules first. */
export function lineSteps(explained: ExplainedLine): WhyStep[] {
  const { judged } = explained;
  // A label such as `finding:12` names a finding that a gateway has stored; findings of a trace have none.
  const findings = explained.findings.map((each) => ({ label: '', finding: findingOf(each, explained.atMs) }));
  const steps =
    judged.event.type === 'uplink' ? uplinkEventSteps(judged, findings) : otherEventSteps(explained, findings);
  const isBroken = ({ kind }: WhyStep): boolean => kind === 'rule-broken';
  return [
    ...cutSteps(judged),
    ...steps.filter(isBroken),
    ...repeatSteps(judged),
    ...steps.filter((each) => !isBroken(each)),
    ...otherLineSteps(explained),
  ];
}

/** The findings about the line, as proto/why takes them. */
type LabelledFindings = Parameters<typeof uplinkSteps>[1];

function uplinkEventSteps({ history }: JudgedLine, findings: LabelledFindings): WhyStep[] {
  return uplinkSteps(uplinkCase(POWER_MODEL, history), findings);
}

/** The steps for a connect, a disconnect, a command, or a finding that the passing of time made. */
function otherEventSteps({ judged: { event, history }, atMs }: ExplainedLine, findings: LabelledFindings): WhyStep[] {
  const broken = findings.flatMap((each) => brokenSteps(each));
  switch (event.type) {
    case 'connect':
      return [...broken, ...connectSteps(POWER_MODEL, history, event)];
    case 'disconnect':
      return [...broken, ...disconnectSteps(POWER_MODEL, history, event)];
    case 'command':
      return [...broken, ...sentCommandSteps(POWER_MODEL, history, event)];
    default: {
      const isPast = true;
      return [
        ...broken,
        believedStep(POWER_MODEL, history.belief, atMs, isPast),
        silenceStep(POWER_MODEL, history.belief, atMs),
        ...lastConnectionEndStep(history),
        lastUplinkStep(history),
        ...afterMomentSteps(POWER_MODEL, history, atMs),
      ];
    }
  }
}

/** Converts a finding of `trace check`; the steps only need rule, severity and message. */
function findingOf({ rule, severity, message, mac }: TraceFinding, atMs: number): Finding {
  return { rule, severity, message, mac, about: null, atMs };
}

/** Says that the lock's earliest events are not in memory. */
function cutSteps({ history: { isCut, before } }: JudgedLine): WhyStep[] {
  if (!isCut) return [];
  const sentence =
    `The trace goes back further: the sentences below rest on what the judge believes, and on the lock’s last ` +
    `${before.length.toLocaleString('en')} events.`;
  return [step('bound', 'cut', SECTIONS.operator, sentence)];
}

/** Says that the line repeats an uplink, or contradicts it. */
function repeatSteps({ event, firstLine }: JudgedLine): WhyStep[] {
  if (event.type !== 'uplink' || event.novelty === 'new') return [];
  const where = firstLine === null ? 'an earlier line' : `line ${firstLine}`;
  const sentence =
    event.novelty === 'repeat'
      ? `The same uplink came before, in ${where}. A repeat changes nothing, and findings name the first line.`
      : `Another uplink with this boot and sequence came before, in ${where}, with other content.`;
  return [step('message', event.novelty, SECTIONS.wire, sentence, event.atMs)];
}

/** The findings about other uplinks of the lock that this line led to or withdrew. */
function otherLineSteps({ judged: { event, history }, findings, atMs }: ExplainedLine): WhyStep[] {
  const { verdict } = history;
  const isOfLine = (about: UplinkKey): boolean =>
    event.type === 'uplink' && event.uplink.boot === about.boot && event.uplink.sequence === about.sequence;
  // A finding about an uplink whose line has been forgotten names this line, so it is already among `findings`.
  const isListed = (rule: string, about: UplinkKey): boolean =>
    findings.some((each) => each.rule === rule && each.about !== null && compareKeys(each.about, about) === 0);
  return [
    ...verdict.findings.flatMap(({ rule, severity, about, message }) => {
      if (about === null || isOfLine(about) || isListed(rule, about)) return [];
      const uplink = `${about.boot}/${about.sequence}`;
      const sentence = `It showed that the earlier uplink ${uplink} broke ${rule}, a ${severity}: ${message}`;
      return [step('finding', rule, SECTIONS.judge, sentence, atMs)];
    }),
    ...verdict.withdrawn
      .filter(({ about }) => !isOfLine(about))
      .map(({ rule, about }) => {
        const sentence = `It explained ${about.boot}/${about.sequence}, which had seemed to break ${rule}.`;
        return step('rule-withdrawn', rule, SECTIONS.judge, sentence, atMs);
      }),
  ];
}
