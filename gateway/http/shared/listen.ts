/** Makes a Fastify server listen, for both HTTP interfaces. */
import type { FastifyInstance } from 'fastify';
import { listenFailure } from '../../listen-failure.js';

/**
 * Resolves when the server listens; closes the server if that fails. `interfaceName` is for the error's sentence.
 *
 * @throws LockgateError `port-taken`, `input-address`
 */
export async function listen(
  fastify: FastifyInstance,
  interfaceName: string,
  host: string,
  port: number,
): Promise<void> {
  try {
    await fastify.listen({ host, port });
  } catch (error) {
    await fastify.close();
    throw listenFailure(interfaceName, { host, port }, error);
  }
}
