/** What an HTTP server of ours bears of a stranger, for the merchants' port and the operators' alike. */
import { Seconds } from '../../proto/clock.js';

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
  },
  /** Ours end when we end, whatever the other side does. */
  forceCloseConnections: true,
} as const;

/** Connections to one port at once; a further one is closed. */
export const MAX_CONNECTIONS = 2_000;
