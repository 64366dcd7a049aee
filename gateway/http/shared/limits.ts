/** What an HTTP server of ours bears of a stranger, for the merchants' port and the operators' alike. */
import { Seconds } from '../../../proto/clock.js';

/** A body may have at most so many bytes (interfaces.md §2). */
export const BODY_BYTES = 1024 * 1024;

/**
 * Fastify's settings. Node looks at the timeouts only as often as `connectionsCheckingInterval` says, every 30 s unless
 * it is told otherwise.
 */
export const HTTP_LIMITS = {
  bodyLimit: BODY_BYTES,
  /** For a whole request, from its first byte to its last. */
  requestTimeout: Seconds(30),
  /** For a connection without a request under way. */
  keepAliveTimeout: Seconds(10),
  http: {
    /** For all header lines together, in bytes; 431 past it. */
    maxHeaderSize: 16 * 1024,
    headersTimeout: Seconds(10),
    connectionsCheckingInterval: Seconds(1),
    /** It is looked at here (connections/host-header.ts): Node's own answer is no problem as RFC 9457 has them. */
    requireHostHeader: false,
  },
  /** Ours end when we end, whatever the other side does. */
  forceCloseConnections: true,
} as const;

/** Connections to one port at once, those of its reserve left out. */
export const MAX_CONNECTIONS = 2_000;
/** Connections to one port beyond that: for whoever has the operators' token, and on the merchants' port for probes. */
export const RESERVED_CONNECTIONS = 64;
