/**
 * Preloaded into a process, makes gzip store instead of compress. `npm pack` compresses the whole package even to list
 * its files, which takes three seconds of CPU time.
 */
import zlib from 'node:zlib';

const SWITCH = 'LOCKGATE_UNCOMPRESSED_GZIP';

/** Returns the environment for a process whose gzip does not compress. */
export function uncompressedGzipEnv(): NodeJS.ProcessEnv {
  return { [SWITCH]: '1', NODE_OPTIONS: `--import ${import.meta.url}` };
}

if (process.env[SWITCH] !== undefined) {
  const { Gzip } = zlib as unknown as { Gzip: new (options?: zlib.ZlibOptions) => zlib.Gzip };
  class UncompressedGzip extends Gzip {
    constructor(options?: zlib.ZlibOptions) {
      super({ ...options, level: zlib.constants.Z_NO_COMPRESSION });
    }
  }
  Object.assign(zlib, { Gzip: UncompressedGzip });
}
