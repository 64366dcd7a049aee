/**
 * Words an error for the person who typed a command: the gateway names members of its JSON, people know the flags of
 * the command. Pure.
 */
import type { Command } from 'commander';

/** An error of the gateway: its sentence, and a JSON pointer for each bad member. */
interface MemberError {
  readonly sentence: string;
  readonly pointers: readonly string[];
}

/** Flags whose names differ from those of the members that they set. */
export const FLAGS_OF_MEMBERS: Readonly<Record<string, string>> = {
  confirm_airplane: '--yes',
  expected_count: '--count',
  expires_at: '--expires',
  expires_in: '--expires',
  grace_seconds: '--grace',
  headers: '--header',
  high_window: '--high-window',
  keep_old_seconds: '--keep-old-for',
  labels: '--label',
  not_before: '--at',
  password: '--password-file',
  remove_headers: '--remove-header',
  set_headers: '--header',
  timeout_seconds: '--timeout',
  url_id: '--url',
  utc_offset_minutes: '--utc-offset',
};

/** `the body, /per_mb: …`, or a member at the start of a sentence: `since is …`, `parameters.seconds: …`. */
const BODY_POINTER = /^the body, (\/[^:]*): /;
const FIRST_MEMBER = /^([a-z_]+(?:\.[a-z_]+|\[\d+\])*)(?= is |: )/;

/** The error's sentence with the command's flags instead of members, if the command has such flags. */
export function withFlagNames({ sentence, pointers }: MemberError, command: Command): string {
  const [, pointer] = BODY_POINTER.exec(sentence) ?? [];
  if (pointer !== undefined) {
    const name = nameOf(pointer.split('/'), command);
    return name === undefined ? sentence : sentence.replace(BODY_POINTER, `${name}: `);
  }
  const [, member] = FIRST_MEMBER.exec(sentence) ?? [];
  const name = member === undefined ? undefined : nameOf(member.split(/[.[\]]/), command);
  if (name !== undefined) return sentence.replace(FIRST_MEMBER, name);
  const [onlyPointer, ...morePointers] = pointers;
  const flag =
    onlyPointer === undefined || morePointers.length > 0 ? undefined : nameOf(onlyPointer.split('/'), command);
  // Not if the sentence names the flag already. The name of an argument, such as `<mac>`, is not added.
  return flag?.startsWith('--') && !sentence.includes(flag) ? `${flag}: ${sentence}` : sentence;
}

/** The name of the flag or argument that sets a member of the path; if several members have one, of the innermost. */
function nameOf(path: readonly string[], command: Command): string | undefined {
  const flags = new Set(command.options.map(({ long }) => long));
  const names = new Set(command.registeredArguments.map((argument) => argument.name()));
  for (const member of path.toReversed()) {
    const flag = [FLAGS_OF_MEMBERS[member], `--${member.replaceAll('_', '-')}`].find((each) => each && flags.has(each));
    if (member !== '' && flag !== undefined) return flag;
    if (names.has(member)) return `<${member}>`;
  }
  return undefined;
}
