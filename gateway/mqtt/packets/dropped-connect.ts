/**
 * Makes the broker library forget a client's CONNECT. Its parser keeps the whole packet for as long as the connection
 * lasts, the lock's secret included, but reads only two members of it. It is half a kilobyte for each idle lock.
 */
/** What the parser reads of a CONNECT. */
interface ParserSettings {
  readonly protocolVersion?: number | undefined;
  readonly bridgeMode?: boolean;
}

/** The library's parser, which its types do not declare. */
interface ClientWithParser {
  readonly _parser: { settings: ParserSettings };
}

/** What the parser needs to know of nearly all clients: that they speak MQTT 3.1.1, and are no bridges. */
const USUAL_SETTINGS: ParserSettings = Object.freeze({ protocolVersion: 4, bridgeMode: false });

/** Drops the CONNECT of a client that is authenticated. */
export function dropConnect(client: object): void {
  const { _parser: parser } = client as ClientWithParser;
  const { protocolVersion, bridgeMode = false } = parser.settings;
  const isUsual = protocolVersion === USUAL_SETTINGS.protocolVersion && !bridgeMode;
  parser.settings = isUsual ? USUAL_SETTINGS : { protocolVersion, bridgeMode };
}
