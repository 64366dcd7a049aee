/** How both HTTP interfaces begin to listen. */
import type { FastifyInstance } from 'fastify';
import { LockgateError } from '../../proto/errors.js';

/** `what` names the interface in the error. @throws LockgateError `port-taken` */
export async function listen(fastify: FastifyInstance, what: string, host: string, port: number): Promise<void> {
  try {
    await fastify.listen({ host, port });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new LockgateError('port-taken', `${what} can't listen on ${host}:${port}: something else does already`);
  }
}
