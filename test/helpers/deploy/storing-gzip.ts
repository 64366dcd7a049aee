/**
 * Makes gzip store instead of compress. `npm pack` compresses the whole package even to list its files, which takes
 * three seconds of CPU time. A test that reads only the list starts npm with `--import` of this file.
 */
import zlib from 'node:zlib';

const { Gzip } = zlib as unknown as { Gzip: new (options?: zlib.ZlibOptions) => zlib.Gzip };

class StoringGzip extends Gzip {
  constructor(options?: zlib.ZlibOptions) {
    super({ ...options, level: zlib.constants.Z_NO_COMPRESSION });
  }
}

Object.assign(zlib, { Gzip: StoringGzip });
