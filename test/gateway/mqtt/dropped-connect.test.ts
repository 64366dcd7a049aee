/** The broker library forgets a client's CONNECT, the lock's secret above all, and reads later packets as before. */
import { generate, type IConnectPacket, type Packet, parser } from 'mqtt-packet';
import t from 'tap';
import { dropConnect } from '../../../gateway/mqtt/packets/dropped-connect.js';

const CONNECT: IConnectPacket = {
  cmd: 'connect',
  protocolId: 'MQTT',
  protocolVersion: 4,
  clean: true,
  clientId: 'a',
  username: 'lock',
  password: Buffer.from('canary-secret'),
};

/** The library's parser after a CONNECT, and the packets that it has read. */
function parserAfter(connect: IConnectPacket) {
  const packets: Packet[] = [];
  const reader = parser() as ReturnType<typeof parser> & { settings: object };
  reader.on('packet', (packet) => packets.push(packet));
  reader.parse(generate(connect));
  return { reader, packets };
}

t.test('the parser keeps nothing of a CONNECT but the version, and reads on', (t) => {
  for (const protocolVersion of [3, 4] as const) {
    const protocolId = protocolVersion === 3 ? 'MQIsdp' : 'MQTT';
    const { reader, packets } = parserAfter({ ...CONNECT, protocolVersion, protocolId });
    t.match(reader.settings, { password: CONNECT.password }, 'the library keeps the secret');
    dropConnect({ _parser: reader });
    t.same(reader.settings, { protocolVersion, bridgeMode: false });
    reader.parse(generate({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'down', qos: 1 }] }));
    reader.parse(
      generate({ cmd: 'publish', messageId: 2, topic: 'up', payload: 'x', qos: 1, dup: false, retain: false }),
    );
    t.same(
      packets.map(({ cmd }) => cmd),
      ['connect', 'subscribe', 'publish'],
    );
  }
  t.end();
});

t.test('the settings of most clients are one object', (t) => {
  const [one, other] = [parserAfter(CONNECT).reader, parserAfter(CONNECT).reader];
  for (const reader of [one, other]) dropConnect({ _parser: reader });
  t.equal(one.settings, other.settings);
  t.end();
});
