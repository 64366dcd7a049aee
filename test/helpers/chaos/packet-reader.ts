/** Cuts what a socket received into MQTT packets (MQTT 3.1.1, 2.2). */

/** Called with a packet's first byte and with what comes after its length. */
export type OnPacket = (header: number, body: Buffer) => void;

/** Reads the packets of one connection. */
export class PacketReader {
  readonly #onPacket: OnPacket;
  #rest: Buffer = Buffer.alloc(0);

  constructor(onPacket: OnPacket) {
    this.#onPacket = onPacket;
  }

  /** Takes the next bytes; calls back for each packet that is complete. */
  add(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let layout = packetLayout(bytes);
    while (layout !== undefined && layout.endAt <= bytes.length) {
      this.#onPacket(bytes[0] ?? 0, bytes.subarray(layout.bodyAt, layout.endAt));
      bytes = bytes.subarray(layout.endAt);
      layout = packetLayout(bytes);
    }
    this.#rest = bytes;
  }
}

/** Where the first packet's body begins, and where the packet ends; undefined while its length is not complete. */
function packetLayout(bytes: Buffer): { readonly bodyAt: number; readonly endAt: number } | undefined {
  let length = 0;
  // Seven bits a byte, the lowest first; the eighth says that another byte follows.
  for (let index = 1; index < bytes.length; index += 1) {
    const byte = bytes[index] ?? 0;
    length += (byte & 127) * 128 ** (index - 1);
    if (byte < 128) return { bodyAt: index + 1, endAt: index + 1 + length };
  }
  return undefined;
}
