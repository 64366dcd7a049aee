/** Makes a Fastify server listen, for both HTTP interfaces. */
import type { FastifyInstance } from 'fastify';
import { listenFailure } from '../../listen-failure.js';

/** `what` names the interface in the error. @throws LockgateError `port-taken`, `input-address` */
export async function listen(fastify: FastifyInstance, what: string, host: string, port: number): Promise<void> {
  try {
    await fastify.listen({ host, port });
  } catch (error) {
    await fastify.close();
    throw listenFailure(what, { host, port }, error);
  }
}
