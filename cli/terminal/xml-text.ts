/** Escapes text for XML and HTML. Pure. */

/** The text for an element or a quoted attribute. Characters that XML does not allow are replaced (XML 1.0 §2.2). */
export function escapeXml(text: string): string {
  return [...text]
    .map((letter) => (isXmlCharacter(letter.codePointAt(0) as number) ? letter : '\ufffd'))
    .join('')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** Whether XML 1.0 allows the character. A character that it does not allow can't be escaped either. */
function isXmlCharacter(code: number): boolean {
  if (code < 0x20) return code === 0x9 || code === 0xa || code === 0xd;
  return code <= 0xd7ff || (code >= 0xe000 && code <= 0xfffd) || code >= 0x10000;
}
