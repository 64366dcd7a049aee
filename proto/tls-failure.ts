/**
 * Says in plain words why a TLS connection failed, for locks' clients and for the gateway: OpenSSL's own messages name
 * library functions, and not what to change. Pure.
 */

/** An error of a socket, of Node or of OpenSSL. */
export type SocketError = Error & { readonly code?: unknown };

/** Why a client's handshake with the gateway failed, by OpenSSL's or Node's code of the error. */
const SERVER_SENTENCES: Readonly<Record<string, string>> = {
  ERR_SSL_WRONG_VERSION_NUMBER:
    'the client does not use TLS, which this port requires: connect with mqtts://, or to the port without TLS',
  ERR_SSL_HTTP_REQUEST: 'the client sent a plain HTTP request; this port is for MQTT over TLS',
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA:
    'the client does not trust the gateway’s certificate: give it the certificate of the authority that issued it',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    'the client refused the gateway’s certificate: it is for another host name, or the client does not trust it',
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE:
    'the client refused the gateway’s certificate: it is for another host name, or the client does not trust it',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    'the client says that the gateway’s certificate has expired; the client’s clock may also be wrong',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'the client uses a TLS version before 1.2',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'the client and the gateway have no version of TLS in common (1.2 or 1.3)',
  ERR_SSL_NO_SHARED_CIPHER: 'the client and the gateway have no cipher in common',
  ECONNRESET: 'the client closed the connection; it may not trust the gateway’s certificate',
};

/** Why a client's handshake with the gateway failed. The original message follows in parentheses. */
export function serverTlsFailure(error: SocketError): string {
  const sentence = SERVER_SENTENCES[String(error.code)];
  return sentence === undefined ? error.message : `${sentence} (${error.message})`;
}

/** For a client that closes right after the handshake, without a byte: it has probably refused the certificate. */
export const CLOSED_AFTER_HANDSHAKE =
  'the client closed the connection at the end of the TLS handshake, before its CONNECT: it probably refused the ' +
  'gateway’s certificate (unknown authority, another host name, expired)';

/** Why a client's connection to a server failed, by the error's code. “Its certificate” is the server's. */
const CLIENT_SENTENCES: Readonly<Record<string, string>> = {
  // A failed write hides OpenSSL's own code.
  EPROTO: 'the other side does not use TLS on this port, or has no version of TLS in common',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the other side does not use TLS on this port: use a URL without TLS, or the TLS port',
  ERR_SSL_PACKET_LENGTH_TOO_LONG:
    'the other side does not use TLS on this port: use a URL without TLS, or the TLS port',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name: use the name that the certificate has',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by itself: trust it with --ca FILE, where there is that flag',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is from an unknown authority: trust it with --ca FILE',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is from an unknown authority: trust it with --ca FILE',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is from an unknown authority: trust it with --ca FILE',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet; the clock of this machine may be wrong',
};

/** Why a connection to a server failed, if TLS is the reason; undefined otherwise. The original message follows. */
export function clientTlsFailure(error: SocketError): string | undefined {
  const sentence = CLIENT_SENTENCES[String(error.code)];
  return sentence === undefined ? undefined : `${sentence} (${error.message.trim()})`;
}
