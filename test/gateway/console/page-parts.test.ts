/**
 * The build of the console's pages replaces the protobuf package by the few parts of it that decoding needs
 * (cli/prepare/page-parts.mjs). Bundled like this, the decoder must return for each uplink (a lock's message), intact
 * or damaged, what it returns with the whole package: the same ping or the same error.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import t from 'tap';
import { Prng } from '../../../firmware-sim/prng.js';
import { decodeUplink } from '../../../proto/wire/codec.js';
import { root } from '../../helpers/house/our-files.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';
import { bytesOf, readVectors } from '../../helpers/vectors.js';

type Decode = typeof decodeUplink;

const samples = readVectors('pings').map(({ name, hex }) => ({ name, bytes: bytesOf(hex) }));

/** The pages' build of the function that decodes uplinks. */
async function pageDecode(folder: string): Promise<Decode> {
  const parts = pathToFileURL(join(root, 'cli/prepare/page-parts.mjs')).href;
  const { protobufPlugin } = (await import(parts)) as { readonly protobufPlugin: Plugin };
  const outfile = join(folder, 'decode.mjs');
  await build({
    stdin: { contents: "export { decodeUplink } from './proto/wire/codec.ts';", resolveDir: root },
    ...{ bundle: true, format: 'esm', platform: 'browser', target: 'es2022', outfile, logLevel: 'silent' },
    plugins: [protobufPlugin],
  });
  return ((await import(pathToFileURL(outfile).href)) as { readonly decodeUplink: Decode }).decodeUplink;
}

t.test('the pages decode each sample as Node.js does', async (t) => {
  const decode = await pageDecode(tempFolder(t));
  t.ok(samples.length > 50, `${samples.length} samples`);
  for (const { name, bytes } of samples) t.strictSame(decode(bytes), decodeUplink(bytes), name);
});

t.test('the pages decode and reject damaged uplinks as Node.js does', async (t) => {
  const decode = await pageDecode(tempFolder(t));
  const random = new Prng('page-parts');
  const seen = { decoded: 0, rejected: 0 };
  for (let round = 0; round < 20_000; round++) {
    const bytes = damage(random.pick(samples).bytes, random);
    const expected = decodeUplink(bytes);
    seen[expected.ok ? 'decoded' : 'rejected'] += 1;
    // Much faster than strictSame, which only reports the first difference.
    if (JSON.stringify(decode(bytes)) !== JSON.stringify(expected)) {
      t.strictSame(decode(bytes), expected, Buffer.from(bytes).toString('hex'));
      return;
    }
  }
  t.ok(seen.decoded > 1_000 && seen.rejected > 1_000, JSON.stringify(seen));
});

/** A copy of the bytes with one to four damages: a byte replaced, up to three removed, or one inserted. */
function damage(bytes: Uint8Array, random: Prng): Uint8Array {
  const changed = Array.from(bytes);
  for (let damagesLeft = random.integer(1, 4); damagesLeft > 0; damagesLeft--) {
    const offset = random.integer(0, changed.length);
    const kind = random.integer(0, 2);
    if (kind === 0) changed.splice(offset, 1, random.integer(0, 255));
    else if (kind === 1) changed.splice(offset, random.integer(1, 3));
    else changed.splice(offset, 0, random.integer(0, 255));
  }
  return new Uint8Array(changed);
}
