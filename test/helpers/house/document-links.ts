/**
 * The links and anchors of Markdown documents, so that tests can follow a link. An anchor is a heading's slug, as
 * GitHub makes it, or the id of an `<a id="…">`.
 */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { root } from './our-files.js';

const anchorsOfFile = new Map<string, ReadonlySet<string>>();

/** A text without its fenced code blocks, whose lines are neither headings nor links. */
function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '');
}

/** GitHub's anchor of a heading: lower case, without punctuation, with dashes for spaces. */
function slugOf(heading: string): string {
  // A link in a heading counts with its text only.
  const plain = heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .trim()
    .toLowerCase();
  return plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-');
}

/** The anchors of a document. GitHub adds a number to the slug of a heading that has occurred before. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of withoutCode(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = slugOf(heading);
    let anchor = slug;
    for (let number = 1; anchors.has(anchor); number += 1) anchor = `${slug}-${number}`;
    anchors.add(anchor);
  }
  for (const [, id = ''] of text.matchAll(/<a id="([^"]+)">/g)) anchors.add(id);
  return anchors;
}

/**
 * Follows a link from the project's folder, such as `docs/traces.md#ping`. Returns null if its file and anchor exist,
 * else a sentence that says what is missing.
 */
export function followLink(link: string): string | null {
  const [file = '', anchor] = link.split('#');
  const full = path.join(root, file);
  if (!existsSync(full)) return `${link}: there is no ${file}`;
  if (anchor === undefined) return null;
  let anchors = anchorsOfFile.get(full);
  if (anchors === undefined) {
    anchors = anchorsOf(readFileSync(full, 'utf8'));
    anchorsOfFile.set(full, anchors);
  }
  return anchors.has(anchor) ? null : `${link}: ${file} has no anchor ${anchor}`;
}

/** The links of a document to files of the project, itself included, as paths from the project's folder. */
export function linksOf(file: string): string[] {
  const text = withoutCode(readFileSync(path.join(root, file), 'utf8'));
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
    // An address, such as `https://…`.
    if (/^[a-z]+:/.test(link)) return [];
    return [link.startsWith('#') ? `${file}${link}` : path.posix.join(path.posix.dirname(file), link)];
  });
}
