/**
 * Importing the gateway's broker turns off the cache of numbers of the package mqtt-packet, which would hold 65,536
 * buffers for ever.
 */
import mqttPacket from 'mqtt-packet';
import t from 'tap';
import '../../../gateway/mqtt/broker.js';

/** A module inside of the package, without types. It is loaded from the copy of the package that the broker uses. */
async function packageNumbers(): Promise<{ readonly cache: Record<number, Buffer> }> {
  return (await import('mqtt-packet/numbers.js' as string)).default;
}

t.test('no buffer is cached for each number', async (t) => {
  const numbers = await packageNumbers();
  // A packet with a number (258 is 1 and 2 as bytes) fills the cache, if it is on.
  t.same(mqttPacket.generate({ cmd: 'puback', messageId: 258 }), Buffer.from([0x40, 2, 1, 2]));
  t.equal(Object.keys(numbers.cache).length, 0, 'the cache is off');
  mqttPacket.writeToStream.cacheNumbers = true;
  mqttPacket.generate({ cmd: 'puback', messageId: 258 });
  t.equal(Object.keys(numbers.cache).length, 65_536, 'the package creates the cache if the option is not off');
});
