/**
 * Makes the steps that explain one line of a trace from what was judged of it. proto/why/ has the sentences about the
 * power model and the rules; this file adds the ones about lines. Pure.
 */
import type { Finding } from '../../../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import type { TraceFinding } from '../../../../proto/trace/findings.js';
import { connectSteps, disconnectSteps, sentCommandSteps } from '../../../../proto/why/connection.js';
import { afterSteps, believedStep, lastEndStep, lastUplinkStep } from '../../../../proto/why/moment.js';
import { silenceStep } from '../../../../proto/why/silence.js';
import { SECTIONS, step, type WhyStep } from '../../../../proto/why/step.js';
import { brokenSteps, uplinkCase, uplinkSteps } from '../../../../proto/why/uplink.js';
import type { JudgedLine } from './judged-line.js';

/** The explanation of a line for one lock. */
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
  const standing = explained.findings.map((each) => ({ label: '', finding: findingOf(each, explained.atMs) }));
  const steps = judged.event.type === 'uplink' ? uplinkChain(judged, standing) : otherChain(explained, standing);
  const isBroken = ({ kind }: WhyStep): boolean => kind === 'rule-broken';
  return [
    ...cutSteps(judged),
    ...steps.filter(isBroken),
    ...repeatSteps(judged),
    ...steps.filter((each) => !isBroken(each)),
    ...elsewhereSteps(explained),
  ];
}

type Standing = Parameters<typeof uplinkSteps>[1];

function uplinkChain({ history }: JudgedLine, standing: Standing): WhyStep[] {
  return uplinkSteps(uplinkCase(POWER_MODEL, history), standing);
}

/** The steps of a connect, a disconnect, a command, or a finding that time made. */
function otherChain({ judged: { event, history }, atMs }: ExplainedLine, standing: Standing): WhyStep[] {
  const broken = standing.flatMap((each) => brokenSteps(each));
  switch (event.type) {
    case 'connect':
      return [...broken, ...connectSteps(POWER_MODEL, history, event)];
    case 'disconnect':
      return [...broken, ...disconnectSteps(POWER_MODEL, history, event)];
    case 'command':
      return [...broken, ...sentCommandSteps(POWER_MODEL, history, event)];
    default:
      return [
        ...broken,
        believedStep(POWER_MODEL, history.belief, atMs, true),
        silenceStep(POWER_MODEL, history.belief, atMs),
        ...lastEndStep(history),
        lastUplinkStep(history),
        ...afterSteps(POWER_MODEL, history, atMs),
      ];
  }
}

/** `trace check` has the rule, the severity and the sentence; the steps need no more. */
function findingOf({ rule, severity, message, mac }: TraceFinding, atMs: number): Finding {
  return { rule, severity, message, mac, about: null, atMs };
}

function cutSteps({ history: { isCut, before } }: JudgedLine): WhyStep[] {
  if (!isCut) return [];
  const sentence =
    `The trace goes back further: the sentences below rest on what the judge believes, and on the lock’s last ` +
    `${before.length.toLocaleString('en')} events.`;
  return [step('bound', 'cut', SECTIONS.operator, sentence)];
}

function repeatSteps({ event, firstLine }: JudgedLine): WhyStep[] {
  if (event.type !== 'uplink' || event.novelty === 'new') return [];
  const where = firstLine === null ? 'an earlier line' : `line ${firstLine}`;
  const sentence =
    event.novelty === 'repeat'
      ? `The same uplink came before, in ${where}. A repeat changes nothing, and findings name the first line.`
      : `Another uplink with this boot and sequence came before, in ${where}, with other content.`;
  return [step('message', event.novelty, SECTIONS.wire, sentence, event.atMs)];
}

/** What this line showed about other lines of the same lock. */
function elsewhereSteps({ judged: { event, history }, findings, atMs }: ExplainedLine): WhyStep[] {
  const { verdict } = history;
  const isOfLine = (about: Finding['about']): boolean =>
    about === null ||
    (event.type === 'uplink' && event.uplink.boot === about.boot && event.uplink.sequence === about.sequence);
  const named = new Set(findings.map(({ rule }) => rule));
  const shown = verdict.findings.filter(({ about, rule }) => !isOfLine(about) && !named.has(rule));
  return [
    ...shown.map(({ rule, severity, about, message }) => {
      const key = about === null ? '' : ` ${about.boot}/${about.sequence}`;
      const sentence = `It showed that the earlier uplink${key} broke ${rule}, a ${severity}: ${message}`;
      return step('finding', rule, SECTIONS.judge, sentence, atMs);
    }),
    ...verdict.withdrawn
      .filter(({ about }) => !isOfLine(about))
      .map(({ rule, about }) => {
        const sentence = `It explained ${about.boot}/${about.sequence}, which had seemed to break ${rule}.`;
        return step('rule-withdrawn', rule, SECTIONS.judge, sentence, atMs);
      }),
  ];
}
