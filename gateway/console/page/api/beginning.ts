/** A time before all events, for calls that ask for everything. RFC 3339. */
export const BEGINNING = '1970-01-01T00:00:00Z';
