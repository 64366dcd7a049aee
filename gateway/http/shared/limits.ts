/** Limits of both HTTP servers, the merchants' and the operators'. */
import { Seconds } from '../../../proto/clock.js';

/** The limit of a request's body, if its route has no limit of its own (interfaces.md §2). */
export const MAX_BODY_BYTES = 1024 * 1024;

/**
 * The limit of one part of a path, in characters: names of merchants and users are parts of paths, and a user's name
 * may have any length if it was stored by a version without `--name-length`.
 */
export const MAX_PATH_PART_CHARS = 4_096;

/** Fastify's settings. */
export const HTTP_LIMITS = {
  bodyLimit: MAX_BODY_BYTES,
  /** For a whole request, from its first byte to its last. */
  requestTimeout: Seconds(30),
  /** For a connection without a request under way. */
  keepAliveTimeout: Seconds(10),
  http: {
    /** For all header lines together, in bytes; a request with more is answered with 431. */
    maxHeaderSize: 16 * 1024,
    headersTimeout: Seconds(10),
    /** How often Node checks the timeouts; the default, 30 s, would let them be exceeded by that. */
    connectionsCheckingInterval: Seconds(1),
    /** Checked in connections/host-header.ts: Node's own answer is not an RFC 9457 problem. */
    requireHostHeader: false,
  },
  /** Closing the server closes every connection, whatever the other side does. */
  forceCloseConnections: true,
} as const;

/** Maximum number of concurrent connections to one port, without its reserve. */
export const MAX_CONNECTIONS = 2_000;
/** Additional connections to one port: for holders of the operators' token, and on the merchants' port for probes. */
export const RESERVED_CONNECTIONS = 64;
