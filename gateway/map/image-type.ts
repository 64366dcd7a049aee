/** Recognises images by their first bytes. Pure. */

/** The content type of an image that browsers draw and that holds no script; undefined for anything else. */
export function imageTypeOf(bytes: Buffer): string | undefined {
  const text = bytes.toString('latin1', 0, 12);
  if (text.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (text.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (/^GIF8[79]a/.test(text)) return 'image/gif';
  if (/^RIFF[\s\S]{4}WEBP/.test(text)) return 'image/webp';
  return /^[\s\S]{4}ftypavi[fs]/.test(text) ? 'image/avif' : undefined;
}
