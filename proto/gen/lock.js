// Generated from lock.proto by `npm run gen`. Change the schema and run it again instead of editing this.
import $protobuf from "protobufjs/minimal.js";

// Common aliases
const $Reader = $protobuf.Reader, $Writer = $protobuf.Writer, $util = $protobuf.util;
const $Object = $util.global.Object, $undefined = $util.global.undefined, $Error = $util.global.Error, $RangeError = $util.global.RangeError;

// Exported root namespace
const $root = $protobuf.roots["default"] || ($protobuf.roots["default"] = {});

export const lockgate = $root.lockgate = (() => {

    /**
     * Namespace lockgate.
     * @exports lockgate
     * @namespace
     */
    const lockgate = {};

    lockgate.v1 = (function() {

        /**
         * Namespace v1.
         * @memberof lockgate
         * @namespace
         */
        const v1 = {};

        v1.Uplink = (function() {

            /**
             * Properties of an Uplink.
             * @typedef {Object} lockgate.v1.Uplink.$Properties
             * @property {number|null} [boot] A counter in flash that increases at each boot of the lock. A reset of the modem is not a boot.
             * @property {number|null} [sequence] 1, 2, 3 … since boot, one per uplink made. Reconnecting does not restart it.
             * @property {Long|null} [timeMs] When the lock made the uplink, by its own clock, in ms since 1970-01-01T00:00:00Z. May be negative (wrong clock).
             * @property {lockgate.v1.Power.$Properties|null} [power] The lock's power settings. Absent means MID with every switch off.
             * @property {number|null} [kept] How many uplinks made earlier still wait in the lock.
             * @property {number|null} [dropped] How many uplinks the lock has discarded since boot because its buffer was full.
             * @property {lockgate.v1.CellularPing.$Properties|null} [cellular] Uplink cellular
             * @property {lockgate.v1.GpsPing.$Properties|null} [gps] Uplink gps
             * @property {lockgate.v1.CloseConnectionPing.$Properties|null} [closeConnection] Uplink closeConnection
             * @property {lockgate.v1.CommandAck.$Properties|null} [commandAck] Uplink commandAck
             * @property {"cellular"|"gps"|"closeConnection"|"commandAck"} [body] Uplink body
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of an Uplink.
             * @memberof lockgate.v1
             * @interface IUplink
             * @augments lockgate.v1.Uplink.$Properties
             * @deprecated Use lockgate.v1.Uplink.$Properties instead.
             */

            /**
             * Narrowed shape of an Uplink.
             * @typedef {{
             *   boot?: number|null;
             *   sequence?: number|null;
             *   timeMs?: Long|null;
             *   power?: lockgate.v1.Power.$Shape|null;
             *   kept?: number|null;
             *   dropped?: number|null;
             *   cellular?: lockgate.v1.CellularPing.$Shape|null;
             *   gps?: lockgate.v1.GpsPing.$Shape|null;
             *   closeConnection?: lockgate.v1.CloseConnectionPing.$Shape|null;
             *   commandAck?: lockgate.v1.CommandAck.$Shape|null;
             *   $unknowns?: Array.<Uint8Array>;
             * } & (
             *   ({ body?: undefined; cellular?: null; gps?: null; closeConnection?: null; commandAck?: null }|{ body?: "cellular"; cellular: lockgate.v1.CellularPing.$Shape; gps?: null; closeConnection?: null; commandAck?: null }|{ body?: "gps"; cellular?: null; gps: lockgate.v1.GpsPing.$Shape; closeConnection?: null; commandAck?: null }|{ body?: "closeConnection"; cellular?: null; gps?: null; closeConnection: lockgate.v1.CloseConnectionPing.$Shape; commandAck?: null }|{ body?: "commandAck"; cellular?: null; gps?: null; closeConnection?: null; commandAck: lockgate.v1.CommandAck.$Shape })
             * )} lockgate.v1.Uplink.$Shape
             */

            /**
             * Constructs a new Uplink.
             * @memberof lockgate.v1
             * @classdesc Published by a lock, or by a phone that acts for it, to the topic `up`. At most 1,024 bytes.
             * @constructor
             * @param {lockgate.v1.Uplink.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const Uplink = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * A counter in flash that increases at each boot of the lock. A reset of the modem is not a boot.
             * @member {number|null|undefined} boot
             * @memberof lockgate.v1.Uplink
             * @instance
             */
            Uplink.prototype.boot = null;

            /**
             * 1, 2, 3 … since boot, one per uplink made. Reconnecting does not restart it.
             * @member {number|null|undefined} sequence
             * @memberof lockgate.v1.Uplink
             * @instance
             */
            Uplink.prototype.sequence = null;

            /**
             * When the lock made the uplink, by its own clock, in ms since 1970-01-01T00:00:00Z. May be negative (wrong clock).
             * @member {Long|null|undefined} timeMs
             * @memberof lockgate.v1.Uplink
             * @instance
             */
            Uplink.prototype.timeMs = null;

            /**
             * The lock's power settings. Absent means MID with every switch off.
             * @member {lockgate.v1.Power.$Properties|null|undefined} power
             * @memberof lockgate.v1.Uplink
             * @instance
             */
            Uplink.prototype.power = null;

            /**
             * How many uplinks made earlier still wait in the lock.
             * @member {number} kept
             * @memberof lockgate.v1.Uplink
             * @instance
             */
            Uplink.prototype.kept = 0;

            /**
             * How many uplinks the lock has discarded since boot because its buffer was full.
             * @member {number} dropped
             * @memberof lockgate.v1.Uplink
             * @instance
             */
            Uplink.prototype.dropped = 0;

            /**
             * Uplink cellular.
             * @member {lockgate.v1.CellularPing.$Properties|null|undefined} cellular
             * @memberof lockgate.v1.Uplink
             * @instance
             */
            Uplink.prototype.cellular = null;

            /**
             * Uplink gps.
             * @member {lockgate.v1.GpsPing.$Properties|null|undefined} gps
             * @memberof lockgate.v1.Uplink
             * @instance
             */
            Uplink.prototype.gps = null;

            /**
             * Uplink closeConnection.
             * @member {lockgate.v1.CloseConnectionPing.$Properties|null|undefined} closeConnection
             * @memberof lockgate.v1.Uplink
             * @instance
             */
            Uplink.prototype.closeConnection = null;

            /**
             * Uplink commandAck.
             * @member {lockgate.v1.CommandAck.$Properties|null|undefined} commandAck
             * @memberof lockgate.v1.Uplink
             * @instance
             */
            Uplink.prototype.commandAck = null;

            // OneOf field names bound to virtual getters and setters
            let $oneOfFields;

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(Uplink.prototype, "_boot", {
                get: $util.oneOfGetter($oneOfFields = ["boot"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(Uplink.prototype, "_sequence", {
                get: $util.oneOfGetter($oneOfFields = ["sequence"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(Uplink.prototype, "_timeMs", {
                get: $util.oneOfGetter($oneOfFields = ["timeMs"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            /**
             * Uplink body.
             * @member {"cellular"|"gps"|"closeConnection"|"commandAck"|undefined} body
             * @memberof lockgate.v1.Uplink
             * @instance
             */
            $Object.defineProperty(Uplink.prototype, "body", {
                get: $util.oneOfGetter($oneOfFields = ["cellular", "gps", "closeConnection", "commandAck"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            /**
             * Creates a new Uplink instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.Uplink
             * @static
             * @param {lockgate.v1.Uplink.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.Uplink} Uplink instance
             * @type {{
             *   (properties: lockgate.v1.Uplink.$Shape): lockgate.v1.Uplink & lockgate.v1.Uplink.$Shape;
             *   (properties?: lockgate.v1.Uplink.$Properties): lockgate.v1.Uplink;
             * }}
             */
            Uplink.create = function(properties) {
                return new Uplink(properties);
            };

            /**
             * Encodes the specified Uplink message. Does not implicitly {@link lockgate.v1.Uplink.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.Uplink
             * @static
             * @param {lockgate.v1.Uplink.$Properties} message Uplink message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            Uplink.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.boot != null && $Object.hasOwnProperty.call(message, "boot"))
                    writer.uint32(/* id 1, wireType 0 =*/8).uint32(message.boot);
                if (message.sequence != null && $Object.hasOwnProperty.call(message, "sequence"))
                    writer.uint32(/* id 2, wireType 0 =*/16).uint32(message.sequence);
                if (message.timeMs != null && $Object.hasOwnProperty.call(message, "timeMs"))
                    writer.uint32(/* id 3, wireType 0 =*/24).int64(message.timeMs);
                if (message.power != null && $Object.hasOwnProperty.call(message, "power"))
                    $root.lockgate.v1.Power.encode(message.power, writer.uint32(/* id 4, wireType 2 =*/34).fork(), _depth + 1).ldelim();
                if (message.kept != null && $Object.hasOwnProperty.call(message, "kept") && message.kept !== 0)
                    writer.uint32(/* id 5, wireType 0 =*/40).uint32(message.kept);
                if (message.dropped != null && $Object.hasOwnProperty.call(message, "dropped") && message.dropped !== 0)
                    writer.uint32(/* id 6, wireType 0 =*/48).uint32(message.dropped);
                if (message.cellular != null && $Object.hasOwnProperty.call(message, "cellular"))
                    $root.lockgate.v1.CellularPing.encode(message.cellular, writer.uint32(/* id 7, wireType 2 =*/58).fork(), _depth + 1).ldelim();
                if (message.gps != null && $Object.hasOwnProperty.call(message, "gps"))
                    $root.lockgate.v1.GpsPing.encode(message.gps, writer.uint32(/* id 8, wireType 2 =*/66).fork(), _depth + 1).ldelim();
                if (message.closeConnection != null && $Object.hasOwnProperty.call(message, "closeConnection"))
                    $root.lockgate.v1.CloseConnectionPing.encode(message.closeConnection, writer.uint32(/* id 9, wireType 2 =*/74).fork(), _depth + 1).ldelim();
                if (message.commandAck != null && $Object.hasOwnProperty.call(message, "commandAck"))
                    $root.lockgate.v1.CommandAck.encode(message.commandAck, writer.uint32(/* id 10, wireType 2 =*/82).fork(), _depth + 1).ldelim();
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes an Uplink message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.Uplink
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.Uplink & lockgate.v1.Uplink.$Shape} Uplink
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            Uplink.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.Uplink();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            message.boot = reader.uint32();
                            message._boot = "boot";
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            message.sequence = reader.uint32();
                            message._sequence = "sequence";
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            message.timeMs = reader.int64();
                            message._timeMs = "timeMs";
                            continue;
                        }
                    case 4: {
                            if (wireType !== 2)
                                break;
                            message.power = $root.lockgate.v1.Power.decode(reader, reader.size(), $undefined, _depth + 1, message.power);
                            continue;
                        }
                    case 5: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.kept = value;
                            else
                                delete message.kept;
                            continue;
                        }
                    case 6: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.dropped = value;
                            else
                                delete message.dropped;
                            continue;
                        }
                    case 7: {
                            if (wireType !== 2)
                                break;
                            message.cellular = $root.lockgate.v1.CellularPing.decode(reader, reader.size(), $undefined, _depth + 1, message.cellular);
                            message.body = "cellular";
                            continue;
                        }
                    case 8: {
                            if (wireType !== 2)
                                break;
                            message.gps = $root.lockgate.v1.GpsPing.decode(reader, reader.size(), $undefined, _depth + 1, message.gps);
                            message.body = "gps";
                            continue;
                        }
                    case 9: {
                            if (wireType !== 2)
                                break;
                            message.closeConnection = $root.lockgate.v1.CloseConnectionPing.decode(reader, reader.size(), $undefined, _depth + 1, message.closeConnection);
                            message.body = "closeConnection";
                            continue;
                        }
                    case 10: {
                            if (wireType !== 2)
                                break;
                            message.commandAck = $root.lockgate.v1.CommandAck.decode(reader, reader.size(), $undefined, _depth + 1, message.commandAck);
                            message.body = "commandAck";
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Uplink;
        })();

        /**
         * Mode enum.
         * @name lockgate.v1.Mode
         * @enum {number}
         * @property {number} MODE_MID=0 MODE_MID value
         * @property {number} MODE_HIGH=1 MODE_HIGH value
         */
        v1.Mode = (function() {
            const valuesById = $Object.create(null), values = $Object.create(valuesById);
            values[valuesById[0] = "MODE_MID"] = 0;
            values[valuesById[1] = "MODE_HIGH"] = 1;
            return values;
        })();

        v1.Power = (function() {

            /**
             * Properties of a Power.
             * @typedef {Object} lockgate.v1.Power.$Properties
             * @property {lockgate.v1.Mode|null} [mode] Power mode
             * @property {boolean|null} [rideTracking] Power rideTracking
             * @property {boolean|null} [airplane] Power airplane
             * @property {boolean|null} [recovery] Power recovery
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a Power.
             * @memberof lockgate.v1
             * @interface IPower
             * @augments lockgate.v1.Power.$Properties
             * @deprecated Use lockgate.v1.Power.$Properties instead.
             */

            /**
             * Shape of a Power.
             * @typedef {lockgate.v1.Power.$Properties} lockgate.v1.Power.$Shape
             */

            /**
             * Constructs a new Power.
             * @memberof lockgate.v1
             * @classdesc Represents a Power.
             * @constructor
             * @param {lockgate.v1.Power.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const Power = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * Power mode.
             * @member {lockgate.v1.Mode} mode
             * @memberof lockgate.v1.Power
             * @instance
             */
            Power.prototype.mode = 0;

            /**
             * Power rideTracking.
             * @member {boolean} rideTracking
             * @memberof lockgate.v1.Power
             * @instance
             */
            Power.prototype.rideTracking = false;

            /**
             * Power airplane.
             * @member {boolean} airplane
             * @memberof lockgate.v1.Power
             * @instance
             */
            Power.prototype.airplane = false;

            /**
             * Power recovery.
             * @member {boolean} recovery
             * @memberof lockgate.v1.Power
             * @instance
             */
            Power.prototype.recovery = false;

            /**
             * Creates a new Power instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.Power
             * @static
             * @param {lockgate.v1.Power.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.Power} Power instance
             * @type {{
             *   (properties: lockgate.v1.Power.$Shape): lockgate.v1.Power & lockgate.v1.Power.$Shape;
             *   (properties?: lockgate.v1.Power.$Properties): lockgate.v1.Power;
             * }}
             */
            Power.create = function(properties) {
                return new Power(properties);
            };

            /**
             * Encodes the specified Power message. Does not implicitly {@link lockgate.v1.Power.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.Power
             * @static
             * @param {lockgate.v1.Power.$Properties} message Power message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            Power.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.mode != null && $Object.hasOwnProperty.call(message, "mode") && message.mode !== 0)
                    writer.uint32(/* id 1, wireType 0 =*/8).int32(message.mode);
                if (message.rideTracking != null && $Object.hasOwnProperty.call(message, "rideTracking") && message.rideTracking !== false)
                    writer.uint32(/* id 2, wireType 0 =*/16).bool(message.rideTracking);
                if (message.airplane != null && $Object.hasOwnProperty.call(message, "airplane") && message.airplane !== false)
                    writer.uint32(/* id 3, wireType 0 =*/24).bool(message.airplane);
                if (message.recovery != null && $Object.hasOwnProperty.call(message, "recovery") && message.recovery !== false)
                    writer.uint32(/* id 4, wireType 0 =*/32).bool(message.recovery);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a Power message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.Power
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.Power & lockgate.v1.Power.$Shape} Power
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            Power.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.Power();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.mode = value;
                            else
                                delete message.mode;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.bool())
                                message.rideTracking = value;
                            else
                                delete message.rideTracking;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.bool())
                                message.airplane = value;
                            else
                                delete message.airplane;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.bool())
                                message.recovery = value;
                            else
                                delete message.recovery;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Power;
        })();

        /**
         * LockState enum.
         * @name lockgate.v1.LockState
         * @enum {number}
         * @property {number} LOCK_STATE_UNKNOWN=0 LOCK_STATE_UNKNOWN value
         * @property {number} LOCK_STATE_LOCKED=1 LOCK_STATE_LOCKED value
         * @property {number} LOCK_STATE_UNLOCKED=2 LOCK_STATE_UNLOCKED value
         */
        v1.LockState = (function() {
            const valuesById = $Object.create(null), values = $Object.create(valuesById);
            values[valuesById[0] = "LOCK_STATE_UNKNOWN"] = 0;
            values[valuesById[1] = "LOCK_STATE_LOCKED"] = 1;
            values[valuesById[2] = "LOCK_STATE_UNLOCKED"] = 2;
            return values;
        })();

        /**
         * TetherState enum.
         * @name lockgate.v1.TetherState
         * @enum {number}
         * @property {number} TETHER_STATE_UNKNOWN=0 TETHER_STATE_UNKNOWN value
         * @property {number} TETHER_STATE_ATTACHED=1 TETHER_STATE_ATTACHED value
         * @property {number} TETHER_STATE_DETACHED=2 TETHER_STATE_DETACHED value
         */
        v1.TetherState = (function() {
            const valuesById = $Object.create(null), values = $Object.create(valuesById);
            values[valuesById[0] = "TETHER_STATE_UNKNOWN"] = 0;
            values[valuesById[1] = "TETHER_STATE_ATTACHED"] = 1;
            values[valuesById[2] = "TETHER_STATE_DETACHED"] = 2;
            return values;
        })();

        /**
         * Why a ping was sent. An unknown number is preserved and shown as REASON_UNRECOGNIZED_<n>.
         * @name lockgate.v1.Reason
         * @enum {number}
         * @property {number} REASON_UNSPECIFIED=0 REASON_UNSPECIFIED value
         * @property {number} REASON_THEFT=1 REASON_THEFT value
         * @property {number} REASON_PERIOD_TRACKING=2 REASON_PERIOD_TRACKING value
         * @property {number} REASON_STATE_PING=3 REASON_STATE_PING value
         * @property {number} REASON_UNLOCKED_PING=4 REASON_UNLOCKED_PING value
         * @property {number} REASON_UNLOCKED_MOVEMENT=5 REASON_UNLOCKED_MOVEMENT value
         * @property {number} REASON_GPS_PING=6 REASON_GPS_PING value
         * @property {number} REASON_CELL_PING=7 REASON_CELL_PING value
         * @property {number} REASON_NETWORK_PING=8 REASON_NETWORK_PING value
         * @property {number} REASON_RESET=9 REASON_RESET value
         * @property {number} REASON_CLOSE_CONNECTION=10 REASON_CLOSE_CONNECTION value
         * @property {number} REASON_PHONE=11 The specification calls this value PHONE, without the prefix that buf requires.
         */
        v1.Reason = (function() {
            const valuesById = $Object.create(null), values = $Object.create(valuesById);
            values[valuesById[0] = "REASON_UNSPECIFIED"] = 0;
            values[valuesById[1] = "REASON_THEFT"] = 1;
            values[valuesById[2] = "REASON_PERIOD_TRACKING"] = 2;
            values[valuesById[3] = "REASON_STATE_PING"] = 3;
            values[valuesById[4] = "REASON_UNLOCKED_PING"] = 4;
            values[valuesById[5] = "REASON_UNLOCKED_MOVEMENT"] = 5;
            values[valuesById[6] = "REASON_GPS_PING"] = 6;
            values[valuesById[7] = "REASON_CELL_PING"] = 7;
            values[valuesById[8] = "REASON_NETWORK_PING"] = 8;
            values[valuesById[9] = "REASON_RESET"] = 9;
            values[valuesById[10] = "REASON_CLOSE_CONNECTION"] = 10;
            values[valuesById[11] = "REASON_PHONE"] = 11;
            return values;
        })();

        v1.CellularPing = (function() {

            /**
             * Properties of a CellularPing.
             * @typedef {Object} lockgate.v1.CellularPing.$Properties
             * @property {lockgate.v1.Reason|null} [reason] CellularPing reason
             * @property {lockgate.v1.LockState|null} [lockState] CellularPing lockState
             * @property {number|null} [batteryPercent] CellularPing batteryPercent
             * @property {string|null} [firmwareVersion] CellularPing firmwareVersion
             * @property {number|null} [ebikeMillivolts] Absent when no e-bike is connected.
             * @property {lockgate.v1.TetherState|null} [tetherState] CellularPing tetherState
             * @property {number|null} [latitudeE7] A position, with REASON_CELL_PING and from a phone: both coordinates or neither.
             * @property {number|null} [longitudeE7] CellularPing longitudeE7
             * @property {number|null} [uncertaintyM] CellularPing uncertaintyM
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a CellularPing.
             * @memberof lockgate.v1
             * @interface ICellularPing
             * @augments lockgate.v1.CellularPing.$Properties
             * @deprecated Use lockgate.v1.CellularPing.$Properties instead.
             */

            /**
             * Shape of a CellularPing.
             * @typedef {lockgate.v1.CellularPing.$Properties} lockgate.v1.CellularPing.$Shape
             */

            /**
             * Constructs a new CellularPing.
             * @memberof lockgate.v1
             * @classdesc Represents a CellularPing.
             * @constructor
             * @param {lockgate.v1.CellularPing.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const CellularPing = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * CellularPing reason.
             * @member {lockgate.v1.Reason} reason
             * @memberof lockgate.v1.CellularPing
             * @instance
             */
            CellularPing.prototype.reason = 0;

            /**
             * CellularPing lockState.
             * @member {lockgate.v1.LockState} lockState
             * @memberof lockgate.v1.CellularPing
             * @instance
             */
            CellularPing.prototype.lockState = 0;

            /**
             * CellularPing batteryPercent.
             * @member {number} batteryPercent
             * @memberof lockgate.v1.CellularPing
             * @instance
             */
            CellularPing.prototype.batteryPercent = 0;

            /**
             * CellularPing firmwareVersion.
             * @member {string} firmwareVersion
             * @memberof lockgate.v1.CellularPing
             * @instance
             */
            CellularPing.prototype.firmwareVersion = "";

            /**
             * Absent when no e-bike is connected.
             * @member {number|null|undefined} ebikeMillivolts
             * @memberof lockgate.v1.CellularPing
             * @instance
             */
            CellularPing.prototype.ebikeMillivolts = null;

            /**
             * CellularPing tetherState.
             * @member {lockgate.v1.TetherState} tetherState
             * @memberof lockgate.v1.CellularPing
             * @instance
             */
            CellularPing.prototype.tetherState = 0;

            /**
             * A position, with REASON_CELL_PING and from a phone: both coordinates or neither.
             * @member {number|null|undefined} latitudeE7
             * @memberof lockgate.v1.CellularPing
             * @instance
             */
            CellularPing.prototype.latitudeE7 = null;

            /**
             * CellularPing longitudeE7.
             * @member {number|null|undefined} longitudeE7
             * @memberof lockgate.v1.CellularPing
             * @instance
             */
            CellularPing.prototype.longitudeE7 = null;

            /**
             * CellularPing uncertaintyM.
             * @member {number|null|undefined} uncertaintyM
             * @memberof lockgate.v1.CellularPing
             * @instance
             */
            CellularPing.prototype.uncertaintyM = null;

            // OneOf field names bound to virtual getters and setters
            let $oneOfFields;

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(CellularPing.prototype, "_ebikeMillivolts", {
                get: $util.oneOfGetter($oneOfFields = ["ebikeMillivolts"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(CellularPing.prototype, "_latitudeE7", {
                get: $util.oneOfGetter($oneOfFields = ["latitudeE7"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(CellularPing.prototype, "_longitudeE7", {
                get: $util.oneOfGetter($oneOfFields = ["longitudeE7"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(CellularPing.prototype, "_uncertaintyM", {
                get: $util.oneOfGetter($oneOfFields = ["uncertaintyM"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            /**
             * Creates a new CellularPing instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.CellularPing
             * @static
             * @param {lockgate.v1.CellularPing.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.CellularPing} CellularPing instance
             * @type {{
             *   (properties: lockgate.v1.CellularPing.$Shape): lockgate.v1.CellularPing & lockgate.v1.CellularPing.$Shape;
             *   (properties?: lockgate.v1.CellularPing.$Properties): lockgate.v1.CellularPing;
             * }}
             */
            CellularPing.create = function(properties) {
                return new CellularPing(properties);
            };

            /**
             * Encodes the specified CellularPing message. Does not implicitly {@link lockgate.v1.CellularPing.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.CellularPing
             * @static
             * @param {lockgate.v1.CellularPing.$Properties} message CellularPing message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            CellularPing.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.reason != null && $Object.hasOwnProperty.call(message, "reason") && message.reason !== 0)
                    writer.uint32(/* id 1, wireType 0 =*/8).int32(message.reason);
                if (message.lockState != null && $Object.hasOwnProperty.call(message, "lockState") && message.lockState !== 0)
                    writer.uint32(/* id 2, wireType 0 =*/16).int32(message.lockState);
                if (message.batteryPercent != null && $Object.hasOwnProperty.call(message, "batteryPercent") && message.batteryPercent !== 0)
                    writer.uint32(/* id 3, wireType 0 =*/24).uint32(message.batteryPercent);
                if (message.firmwareVersion != null && $Object.hasOwnProperty.call(message, "firmwareVersion") && message.firmwareVersion !== "")
                    writer.uint32(/* id 4, wireType 2 =*/34).string(message.firmwareVersion);
                if (message.ebikeMillivolts != null && $Object.hasOwnProperty.call(message, "ebikeMillivolts"))
                    writer.uint32(/* id 5, wireType 0 =*/40).uint32(message.ebikeMillivolts);
                if (message.tetherState != null && $Object.hasOwnProperty.call(message, "tetherState") && message.tetherState !== 0)
                    writer.uint32(/* id 6, wireType 0 =*/48).int32(message.tetherState);
                if (message.latitudeE7 != null && $Object.hasOwnProperty.call(message, "latitudeE7"))
                    writer.uint32(/* id 7, wireType 5 =*/61).sfixed32(message.latitudeE7);
                if (message.longitudeE7 != null && $Object.hasOwnProperty.call(message, "longitudeE7"))
                    writer.uint32(/* id 8, wireType 5 =*/69).sfixed32(message.longitudeE7);
                if (message.uncertaintyM != null && $Object.hasOwnProperty.call(message, "uncertaintyM"))
                    writer.uint32(/* id 9, wireType 0 =*/72).sint32(message.uncertaintyM);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a CellularPing message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.CellularPing
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.CellularPing & lockgate.v1.CellularPing.$Shape} CellularPing
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            CellularPing.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.CellularPing();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.reason = value;
                            else
                                delete message.reason;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.lockState = value;
                            else
                                delete message.lockState;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.batteryPercent = value;
                            else
                                delete message.batteryPercent;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.firmwareVersion = value;
                            else
                                delete message.firmwareVersion;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 0)
                                break;
                            message.ebikeMillivolts = reader.uint32();
                            message._ebikeMillivolts = "ebikeMillivolts";
                            continue;
                        }
                    case 6: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.tetherState = value;
                            else
                                delete message.tetherState;
                            continue;
                        }
                    case 7: {
                            if (wireType !== 5)
                                break;
                            message.latitudeE7 = reader.sfixed32();
                            message._latitudeE7 = "latitudeE7";
                            continue;
                        }
                    case 8: {
                            if (wireType !== 5)
                                break;
                            message.longitudeE7 = reader.sfixed32();
                            message._longitudeE7 = "longitudeE7";
                            continue;
                        }
                    case 9: {
                            if (wireType !== 0)
                                break;
                            message.uncertaintyM = reader.sint32();
                            message._uncertaintyM = "uncertaintyM";
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return CellularPing;
        })();

        v1.GpsPing = (function() {

            /**
             * Properties of a GpsPing.
             * @typedef {Object} lockgate.v1.GpsPing.$Properties
             * @property {lockgate.v1.Reason|null} [reason] GpsPing reason
             * @property {lockgate.v1.LockState|null} [lockState] GpsPing lockState
             * @property {number|null} [batteryPercent] GpsPing batteryPercent
             * @property {number|null} [ebikeMillivolts] GpsPing ebikeMillivolts
             * @property {lockgate.v1.TetherState|null} [tetherState] GpsPing tetherState
             * @property {number|null} [latitudeE7] Degrees × 10⁷. Values outside the valid range are possible on purpose: the gateway stores and judges them.
             * @property {number|null} [longitudeE7] GpsPing longitudeE7
             * @property {number|null} [speedCmPerS] GpsPing speedCmPerS
             * @property {number|null} [directionCentidegrees] Hundredths of a degree, clockwise from north.
             * @property {number|null} [uncertaintyM] GpsPing uncertaintyM
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a GpsPing.
             * @memberof lockgate.v1
             * @interface IGpsPing
             * @augments lockgate.v1.GpsPing.$Properties
             * @deprecated Use lockgate.v1.GpsPing.$Properties instead.
             */

            /**
             * Shape of a GpsPing.
             * @typedef {lockgate.v1.GpsPing.$Properties} lockgate.v1.GpsPing.$Shape
             */

            /**
             * Constructs a new GpsPing.
             * @memberof lockgate.v1
             * @classdesc Represents a GpsPing.
             * @constructor
             * @param {lockgate.v1.GpsPing.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const GpsPing = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * GpsPing reason.
             * @member {lockgate.v1.Reason} reason
             * @memberof lockgate.v1.GpsPing
             * @instance
             */
            GpsPing.prototype.reason = 0;

            /**
             * GpsPing lockState.
             * @member {lockgate.v1.LockState} lockState
             * @memberof lockgate.v1.GpsPing
             * @instance
             */
            GpsPing.prototype.lockState = 0;

            /**
             * GpsPing batteryPercent.
             * @member {number} batteryPercent
             * @memberof lockgate.v1.GpsPing
             * @instance
             */
            GpsPing.prototype.batteryPercent = 0;

            /**
             * GpsPing ebikeMillivolts.
             * @member {number|null|undefined} ebikeMillivolts
             * @memberof lockgate.v1.GpsPing
             * @instance
             */
            GpsPing.prototype.ebikeMillivolts = null;

            /**
             * GpsPing tetherState.
             * @member {lockgate.v1.TetherState} tetherState
             * @memberof lockgate.v1.GpsPing
             * @instance
             */
            GpsPing.prototype.tetherState = 0;

            /**
             * Degrees × 10⁷. Values outside the valid range are possible on purpose: the gateway stores and judges them.
             * @member {number} latitudeE7
             * @memberof lockgate.v1.GpsPing
             * @instance
             */
            GpsPing.prototype.latitudeE7 = 0;

            /**
             * GpsPing longitudeE7.
             * @member {number} longitudeE7
             * @memberof lockgate.v1.GpsPing
             * @instance
             */
            GpsPing.prototype.longitudeE7 = 0;

            /**
             * GpsPing speedCmPerS.
             * @member {number} speedCmPerS
             * @memberof lockgate.v1.GpsPing
             * @instance
             */
            GpsPing.prototype.speedCmPerS = 0;

            /**
             * Hundredths of a degree, clockwise from north.
             * @member {number} directionCentidegrees
             * @memberof lockgate.v1.GpsPing
             * @instance
             */
            GpsPing.prototype.directionCentidegrees = 0;

            /**
             * GpsPing uncertaintyM.
             * @member {number} uncertaintyM
             * @memberof lockgate.v1.GpsPing
             * @instance
             */
            GpsPing.prototype.uncertaintyM = 0;

            // OneOf field names bound to virtual getters and setters
            let $oneOfFields;

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(GpsPing.prototype, "_ebikeMillivolts", {
                get: $util.oneOfGetter($oneOfFields = ["ebikeMillivolts"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            /**
             * Creates a new GpsPing instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.GpsPing
             * @static
             * @param {lockgate.v1.GpsPing.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.GpsPing} GpsPing instance
             * @type {{
             *   (properties: lockgate.v1.GpsPing.$Shape): lockgate.v1.GpsPing & lockgate.v1.GpsPing.$Shape;
             *   (properties?: lockgate.v1.GpsPing.$Properties): lockgate.v1.GpsPing;
             * }}
             */
            GpsPing.create = function(properties) {
                return new GpsPing(properties);
            };

            /**
             * Encodes the specified GpsPing message. Does not implicitly {@link lockgate.v1.GpsPing.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.GpsPing
             * @static
             * @param {lockgate.v1.GpsPing.$Properties} message GpsPing message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            GpsPing.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.reason != null && $Object.hasOwnProperty.call(message, "reason") && message.reason !== 0)
                    writer.uint32(/* id 1, wireType 0 =*/8).int32(message.reason);
                if (message.lockState != null && $Object.hasOwnProperty.call(message, "lockState") && message.lockState !== 0)
                    writer.uint32(/* id 2, wireType 0 =*/16).int32(message.lockState);
                if (message.batteryPercent != null && $Object.hasOwnProperty.call(message, "batteryPercent") && message.batteryPercent !== 0)
                    writer.uint32(/* id 3, wireType 0 =*/24).uint32(message.batteryPercent);
                if (message.ebikeMillivolts != null && $Object.hasOwnProperty.call(message, "ebikeMillivolts"))
                    writer.uint32(/* id 4, wireType 0 =*/32).uint32(message.ebikeMillivolts);
                if (message.tetherState != null && $Object.hasOwnProperty.call(message, "tetherState") && message.tetherState !== 0)
                    writer.uint32(/* id 5, wireType 0 =*/40).int32(message.tetherState);
                if (message.latitudeE7 != null && $Object.hasOwnProperty.call(message, "latitudeE7") && message.latitudeE7 !== 0)
                    writer.uint32(/* id 6, wireType 5 =*/53).sfixed32(message.latitudeE7);
                if (message.longitudeE7 != null && $Object.hasOwnProperty.call(message, "longitudeE7") && message.longitudeE7 !== 0)
                    writer.uint32(/* id 7, wireType 5 =*/61).sfixed32(message.longitudeE7);
                if (message.speedCmPerS != null && $Object.hasOwnProperty.call(message, "speedCmPerS") && message.speedCmPerS !== 0)
                    writer.uint32(/* id 8, wireType 0 =*/64).sint32(message.speedCmPerS);
                if (message.directionCentidegrees != null && $Object.hasOwnProperty.call(message, "directionCentidegrees") && message.directionCentidegrees !== 0)
                    writer.uint32(/* id 9, wireType 0 =*/72).sint32(message.directionCentidegrees);
                if (message.uncertaintyM != null && $Object.hasOwnProperty.call(message, "uncertaintyM") && message.uncertaintyM !== 0)
                    writer.uint32(/* id 10, wireType 0 =*/80).sint32(message.uncertaintyM);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a GpsPing message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.GpsPing
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.GpsPing & lockgate.v1.GpsPing.$Shape} GpsPing
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            GpsPing.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.GpsPing();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.reason = value;
                            else
                                delete message.reason;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.lockState = value;
                            else
                                delete message.lockState;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.batteryPercent = value;
                            else
                                delete message.batteryPercent;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            message.ebikeMillivolts = reader.uint32();
                            message._ebikeMillivolts = "ebikeMillivolts";
                            continue;
                        }
                    case 5: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.tetherState = value;
                            else
                                delete message.tetherState;
                            continue;
                        }
                    case 6: {
                            if (wireType !== 5)
                                break;
                            if (value = reader.sfixed32())
                                message.latitudeE7 = value;
                            else
                                delete message.latitudeE7;
                            continue;
                        }
                    case 7: {
                            if (wireType !== 5)
                                break;
                            if (value = reader.sfixed32())
                                message.longitudeE7 = value;
                            else
                                delete message.longitudeE7;
                            continue;
                        }
                    case 8: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.sint32())
                                message.speedCmPerS = value;
                            else
                                delete message.speedCmPerS;
                            continue;
                        }
                    case 9: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.sint32())
                                message.directionCentidegrees = value;
                            else
                                delete message.directionCentidegrees;
                            continue;
                        }
                    case 10: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.sint32())
                                message.uncertaintyM = value;
                            else
                                delete message.uncertaintyM;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return GpsPing;
        })();

        v1.CloseConnectionPing = (function() {

            /**
             * Properties of a CloseConnectionPing.
             * @typedef {Object} lockgate.v1.CloseConnectionPing.$Properties
             * @property {lockgate.v1.LockState|null} [lockState] CloseConnectionPing lockState
             * @property {number|null} [batteryPercent] CloseConnectionPing batteryPercent
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a CloseConnectionPing.
             * @memberof lockgate.v1
             * @interface ICloseConnectionPing
             * @augments lockgate.v1.CloseConnectionPing.$Properties
             * @deprecated Use lockgate.v1.CloseConnectionPing.$Properties instead.
             */

            /**
             * Shape of a CloseConnectionPing.
             * @typedef {lockgate.v1.CloseConnectionPing.$Properties} lockgate.v1.CloseConnectionPing.$Shape
             */

            /**
             * Constructs a new CloseConnectionPing.
             * @memberof lockgate.v1
             * @classdesc The lock is about to leave the network. Its reason is REASON_CLOSE_CONNECTION by definition, so it is not sent.
             * @constructor
             * @param {lockgate.v1.CloseConnectionPing.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const CloseConnectionPing = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * CloseConnectionPing lockState.
             * @member {lockgate.v1.LockState} lockState
             * @memberof lockgate.v1.CloseConnectionPing
             * @instance
             */
            CloseConnectionPing.prototype.lockState = 0;

            /**
             * CloseConnectionPing batteryPercent.
             * @member {number} batteryPercent
             * @memberof lockgate.v1.CloseConnectionPing
             * @instance
             */
            CloseConnectionPing.prototype.batteryPercent = 0;

            /**
             * Creates a new CloseConnectionPing instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.CloseConnectionPing
             * @static
             * @param {lockgate.v1.CloseConnectionPing.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.CloseConnectionPing} CloseConnectionPing instance
             * @type {{
             *   (properties: lockgate.v1.CloseConnectionPing.$Shape): lockgate.v1.CloseConnectionPing & lockgate.v1.CloseConnectionPing.$Shape;
             *   (properties?: lockgate.v1.CloseConnectionPing.$Properties): lockgate.v1.CloseConnectionPing;
             * }}
             */
            CloseConnectionPing.create = function(properties) {
                return new CloseConnectionPing(properties);
            };

            /**
             * Encodes the specified CloseConnectionPing message. Does not implicitly {@link lockgate.v1.CloseConnectionPing.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.CloseConnectionPing
             * @static
             * @param {lockgate.v1.CloseConnectionPing.$Properties} message CloseConnectionPing message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            CloseConnectionPing.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.lockState != null && $Object.hasOwnProperty.call(message, "lockState") && message.lockState !== 0)
                    writer.uint32(/* id 1, wireType 0 =*/8).int32(message.lockState);
                if (message.batteryPercent != null && $Object.hasOwnProperty.call(message, "batteryPercent") && message.batteryPercent !== 0)
                    writer.uint32(/* id 2, wireType 0 =*/16).uint32(message.batteryPercent);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a CloseConnectionPing message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.CloseConnectionPing
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.CloseConnectionPing & lockgate.v1.CloseConnectionPing.$Shape} CloseConnectionPing
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            CloseConnectionPing.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.CloseConnectionPing();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.lockState = value;
                            else
                                delete message.lockState;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.batteryPercent = value;
                            else
                                delete message.batteryPercent;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return CloseConnectionPing;
        })();

        /**
         * CommandResult enum.
         * @name lockgate.v1.CommandResult
         * @enum {number}
         * @property {number} COMMAND_RESULT_UNSPECIFIED=0 COMMAND_RESULT_UNSPECIFIED value
         * @property {number} COMMAND_RESULT_OK=1 COMMAND_RESULT_OK value
         * @property {number} COMMAND_RESULT_REJECTED=2 COMMAND_RESULT_REJECTED value
         * @property {number} COMMAND_RESULT_FAILED=3 COMMAND_RESULT_FAILED value
         */
        v1.CommandResult = (function() {
            const valuesById = $Object.create(null), values = $Object.create(valuesById);
            values[valuesById[0] = "COMMAND_RESULT_UNSPECIFIED"] = 0;
            values[valuesById[1] = "COMMAND_RESULT_OK"] = 1;
            values[valuesById[2] = "COMMAND_RESULT_REJECTED"] = 2;
            values[valuesById[3] = "COMMAND_RESULT_FAILED"] = 3;
            return values;
        })();

        v1.CommandAck = (function() {

            /**
             * Properties of a CommandAck.
             * @typedef {Object} lockgate.v1.CommandAck.$Properties
             * @property {number|null} [id] CommandAck id
             * @property {lockgate.v1.CommandResult|null} [result] CommandAck result
             * @property {string|null} [detail] A short reason for users.
             * @property {lockgate.v1.HighWindow.$Properties|null} [highWindow] After set-power: the high window now in force.
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a CommandAck.
             * @memberof lockgate.v1
             * @interface ICommandAck
             * @augments lockgate.v1.CommandAck.$Properties
             * @deprecated Use lockgate.v1.CommandAck.$Properties instead.
             */

            /**
             * Shape of a CommandAck.
             * @typedef {lockgate.v1.CommandAck.$Properties} lockgate.v1.CommandAck.$Shape
             */

            /**
             * Constructs a new CommandAck.
             * @memberof lockgate.v1
             * @classdesc Represents a CommandAck.
             * @constructor
             * @param {lockgate.v1.CommandAck.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const CommandAck = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * CommandAck id.
             * @member {number} id
             * @memberof lockgate.v1.CommandAck
             * @instance
             */
            CommandAck.prototype.id = 0;

            /**
             * CommandAck result.
             * @member {lockgate.v1.CommandResult} result
             * @memberof lockgate.v1.CommandAck
             * @instance
             */
            CommandAck.prototype.result = 0;

            /**
             * A short reason for users.
             * @member {string} detail
             * @memberof lockgate.v1.CommandAck
             * @instance
             */
            CommandAck.prototype.detail = "";

            /**
             * After set-power: the high window now in force.
             * @member {lockgate.v1.HighWindow.$Properties|null|undefined} highWindow
             * @memberof lockgate.v1.CommandAck
             * @instance
             */
            CommandAck.prototype.highWindow = null;

            /**
             * Creates a new CommandAck instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.CommandAck
             * @static
             * @param {lockgate.v1.CommandAck.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.CommandAck} CommandAck instance
             * @type {{
             *   (properties: lockgate.v1.CommandAck.$Shape): lockgate.v1.CommandAck & lockgate.v1.CommandAck.$Shape;
             *   (properties?: lockgate.v1.CommandAck.$Properties): lockgate.v1.CommandAck;
             * }}
             */
            CommandAck.create = function(properties) {
                return new CommandAck(properties);
            };

            /**
             * Encodes the specified CommandAck message. Does not implicitly {@link lockgate.v1.CommandAck.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.CommandAck
             * @static
             * @param {lockgate.v1.CommandAck.$Properties} message CommandAck message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            CommandAck.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.id != null && $Object.hasOwnProperty.call(message, "id") && message.id !== 0)
                    writer.uint32(/* id 1, wireType 0 =*/8).uint32(message.id);
                if (message.result != null && $Object.hasOwnProperty.call(message, "result") && message.result !== 0)
                    writer.uint32(/* id 2, wireType 0 =*/16).int32(message.result);
                if (message.detail != null && $Object.hasOwnProperty.call(message, "detail") && message.detail !== "")
                    writer.uint32(/* id 3, wireType 2 =*/26).string(message.detail);
                if (message.highWindow != null && $Object.hasOwnProperty.call(message, "highWindow"))
                    $root.lockgate.v1.HighWindow.encode(message.highWindow, writer.uint32(/* id 4, wireType 2 =*/34).fork(), _depth + 1).ldelim();
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a CommandAck message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.CommandAck
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.CommandAck & lockgate.v1.CommandAck.$Shape} CommandAck
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            CommandAck.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.CommandAck();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.id = value;
                            else
                                delete message.id;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.result = value;
                            else
                                delete message.result;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.detail = value;
                            else
                                delete message.detail;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 2)
                                break;
                            message.highWindow = $root.lockgate.v1.HighWindow.decode(reader, reader.size(), $undefined, _depth + 1, message.highWindow);
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return CommandAck;
        })();

        v1.HighWindow = (function() {

            /**
             * Properties of a HighWindow.
             * @typedef {Object} lockgate.v1.HighWindow.$Properties
             * @property {number|null} [fromMinute] HighWindow fromMinute
             * @property {number|null} [toMinute] HighWindow toMinute
             * @property {number|null} [utcOffsetMinutes] HighWindow utcOffsetMinutes
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a HighWindow.
             * @memberof lockgate.v1
             * @interface IHighWindow
             * @augments lockgate.v1.HighWindow.$Properties
             * @deprecated Use lockgate.v1.HighWindow.$Properties instead.
             */

            /**
             * Shape of a HighWindow.
             * @typedef {lockgate.v1.HighWindow.$Properties} lockgate.v1.HighWindow.$Shape
             */

            /**
             * Constructs a new HighWindow.
             * @memberof lockgate.v1
             * @classdesc When HIGH keeps the connection. Equal minutes mean the whole day; if from_minute is greater, it runs over midnight.
             * @constructor
             * @param {lockgate.v1.HighWindow.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const HighWindow = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * HighWindow fromMinute.
             * @member {number} fromMinute
             * @memberof lockgate.v1.HighWindow
             * @instance
             */
            HighWindow.prototype.fromMinute = 0;

            /**
             * HighWindow toMinute.
             * @member {number} toMinute
             * @memberof lockgate.v1.HighWindow
             * @instance
             */
            HighWindow.prototype.toMinute = 0;

            /**
             * HighWindow utcOffsetMinutes.
             * @member {number} utcOffsetMinutes
             * @memberof lockgate.v1.HighWindow
             * @instance
             */
            HighWindow.prototype.utcOffsetMinutes = 0;

            /**
             * Creates a new HighWindow instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.HighWindow
             * @static
             * @param {lockgate.v1.HighWindow.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.HighWindow} HighWindow instance
             * @type {{
             *   (properties: lockgate.v1.HighWindow.$Shape): lockgate.v1.HighWindow & lockgate.v1.HighWindow.$Shape;
             *   (properties?: lockgate.v1.HighWindow.$Properties): lockgate.v1.HighWindow;
             * }}
             */
            HighWindow.create = function(properties) {
                return new HighWindow(properties);
            };

            /**
             * Encodes the specified HighWindow message. Does not implicitly {@link lockgate.v1.HighWindow.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.HighWindow
             * @static
             * @param {lockgate.v1.HighWindow.$Properties} message HighWindow message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            HighWindow.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.fromMinute != null && $Object.hasOwnProperty.call(message, "fromMinute") && message.fromMinute !== 0)
                    writer.uint32(/* id 1, wireType 0 =*/8).uint32(message.fromMinute);
                if (message.toMinute != null && $Object.hasOwnProperty.call(message, "toMinute") && message.toMinute !== 0)
                    writer.uint32(/* id 2, wireType 0 =*/16).uint32(message.toMinute);
                if (message.utcOffsetMinutes != null && $Object.hasOwnProperty.call(message, "utcOffsetMinutes") && message.utcOffsetMinutes !== 0)
                    writer.uint32(/* id 3, wireType 0 =*/24).sint32(message.utcOffsetMinutes);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a HighWindow message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.HighWindow
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.HighWindow & lockgate.v1.HighWindow.$Shape} HighWindow
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            HighWindow.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.HighWindow();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.fromMinute = value;
                            else
                                delete message.fromMinute;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.toMinute = value;
                            else
                                delete message.toMinute;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.sint32())
                                message.utcOffsetMinutes = value;
                            else
                                delete message.utcOffsetMinutes;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return HighWindow;
        })();

        v1.Downlink = (function() {

            /**
             * Properties of a Downlink.
             * @typedef {Object} lockgate.v1.Downlink.$Properties
             * @property {number|null} [id] A lock carries out an id once, however often it arrives, and acknowledges it each time.
             * @property {Long|null} [expiresMs] From this time on the lock must not carry out the command; ms since 1970-01-01T00:00:00Z.
             * @property {lockgate.v1.Unlock.$Properties|null} [unlock] Downlink unlock
             * @property {lockgate.v1.Lock.$Properties|null} [lock] Downlink lock
             * @property {lockgate.v1.Siren.$Properties|null} [siren] Downlink siren
             * @property {lockgate.v1.LocateGps.$Properties|null} [locateGps] Downlink locateGps
             * @property {lockgate.v1.LocateCell.$Properties|null} [locateCell] Downlink locateCell
             * @property {lockgate.v1.SetPower.$Properties|null} [setPower] Downlink setPower
             * @property {lockgate.v1.Reset.$Properties|null} [reset] Downlink reset
             * @property {"unlock"|"lock"|"siren"|"locateGps"|"locateCell"|"setPower"|"reset"} [command] Downlink command
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a Downlink.
             * @memberof lockgate.v1
             * @interface IDownlink
             * @augments lockgate.v1.Downlink.$Properties
             * @deprecated Use lockgate.v1.Downlink.$Properties instead.
             */

            /**
             * Narrowed shape of a Downlink.
             * @typedef {{
             *   id?: number|null;
             *   expiresMs?: Long|null;
             *   unlock?: lockgate.v1.Unlock.$Shape|null;
             *   lock?: lockgate.v1.Lock.$Shape|null;
             *   siren?: lockgate.v1.Siren.$Shape|null;
             *   locateGps?: lockgate.v1.LocateGps.$Shape|null;
             *   locateCell?: lockgate.v1.LocateCell.$Shape|null;
             *   setPower?: lockgate.v1.SetPower.$Shape|null;
             *   reset?: lockgate.v1.Reset.$Shape|null;
             *   $unknowns?: Array.<Uint8Array>;
             * } & (
             *   ({ command?: undefined; unlock?: null; lock?: null; siren?: null; locateGps?: null; locateCell?: null; setPower?: null; reset?: null }|{ command?: "unlock"; unlock: lockgate.v1.Unlock.$Shape; lock?: null; siren?: null; locateGps?: null; locateCell?: null; setPower?: null; reset?: null }|{ command?: "lock"; unlock?: null; lock: lockgate.v1.Lock.$Shape; siren?: null; locateGps?: null; locateCell?: null; setPower?: null; reset?: null }|{ command?: "siren"; unlock?: null; lock?: null; siren: lockgate.v1.Siren.$Shape; locateGps?: null; locateCell?: null; setPower?: null; reset?: null }|{ command?: "locateGps"; unlock?: null; lock?: null; siren?: null; locateGps: lockgate.v1.LocateGps.$Shape; locateCell?: null; setPower?: null; reset?: null }|{ command?: "locateCell"; unlock?: null; lock?: null; siren?: null; locateGps?: null; locateCell: lockgate.v1.LocateCell.$Shape; setPower?: null; reset?: null }|{ command?: "setPower"; unlock?: null; lock?: null; siren?: null; locateGps?: null; locateCell?: null; setPower: lockgate.v1.SetPower.$Shape; reset?: null }|{ command?: "reset"; unlock?: null; lock?: null; siren?: null; locateGps?: null; locateCell?: null; setPower?: null; reset: lockgate.v1.Reset.$Shape })
             * )} lockgate.v1.Downlink.$Shape
             */

            /**
             * Constructs a new Downlink.
             * @memberof lockgate.v1
             * @classdesc Sent by the gateway to one client on the topic `down`.
             * @constructor
             * @param {lockgate.v1.Downlink.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const Downlink = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * A lock carries out an id once, however often it arrives, and acknowledges it each time.
             * @member {number} id
             * @memberof lockgate.v1.Downlink
             * @instance
             */
            Downlink.prototype.id = 0;

            /**
             * From this time on the lock must not carry out the command; ms since 1970-01-01T00:00:00Z.
             * @member {Long} expiresMs
             * @memberof lockgate.v1.Downlink
             * @instance
             */
            Downlink.prototype.expiresMs = $util.Long ? $util.Long.fromBits(0,0,false) : 0;

            /**
             * Downlink unlock.
             * @member {lockgate.v1.Unlock.$Properties|null|undefined} unlock
             * @memberof lockgate.v1.Downlink
             * @instance
             */
            Downlink.prototype.unlock = null;

            /**
             * Downlink lock.
             * @member {lockgate.v1.Lock.$Properties|null|undefined} lock
             * @memberof lockgate.v1.Downlink
             * @instance
             */
            Downlink.prototype.lock = null;

            /**
             * Downlink siren.
             * @member {lockgate.v1.Siren.$Properties|null|undefined} siren
             * @memberof lockgate.v1.Downlink
             * @instance
             */
            Downlink.prototype.siren = null;

            /**
             * Downlink locateGps.
             * @member {lockgate.v1.LocateGps.$Properties|null|undefined} locateGps
             * @memberof lockgate.v1.Downlink
             * @instance
             */
            Downlink.prototype.locateGps = null;

            /**
             * Downlink locateCell.
             * @member {lockgate.v1.LocateCell.$Properties|null|undefined} locateCell
             * @memberof lockgate.v1.Downlink
             * @instance
             */
            Downlink.prototype.locateCell = null;

            /**
             * Downlink setPower.
             * @member {lockgate.v1.SetPower.$Properties|null|undefined} setPower
             * @memberof lockgate.v1.Downlink
             * @instance
             */
            Downlink.prototype.setPower = null;

            /**
             * Downlink reset.
             * @member {lockgate.v1.Reset.$Properties|null|undefined} reset
             * @memberof lockgate.v1.Downlink
             * @instance
             */
            Downlink.prototype.reset = null;

            // OneOf field names bound to virtual getters and setters
            let $oneOfFields;

            /**
             * Downlink command.
             * @member {"unlock"|"lock"|"siren"|"locateGps"|"locateCell"|"setPower"|"reset"|undefined} command
             * @memberof lockgate.v1.Downlink
             * @instance
             */
            $Object.defineProperty(Downlink.prototype, "command", {
                get: $util.oneOfGetter($oneOfFields = ["unlock", "lock", "siren", "locateGps", "locateCell", "setPower", "reset"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            /**
             * Creates a new Downlink instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.Downlink
             * @static
             * @param {lockgate.v1.Downlink.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.Downlink} Downlink instance
             * @type {{
             *   (properties: lockgate.v1.Downlink.$Shape): lockgate.v1.Downlink & lockgate.v1.Downlink.$Shape;
             *   (properties?: lockgate.v1.Downlink.$Properties): lockgate.v1.Downlink;
             * }}
             */
            Downlink.create = function(properties) {
                return new Downlink(properties);
            };

            /**
             * Encodes the specified Downlink message. Does not implicitly {@link lockgate.v1.Downlink.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.Downlink
             * @static
             * @param {lockgate.v1.Downlink.$Properties} message Downlink message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            Downlink.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.id != null && $Object.hasOwnProperty.call(message, "id") && message.id !== 0)
                    writer.uint32(/* id 1, wireType 0 =*/8).uint32(message.id);
                if (message.expiresMs != null && $Object.hasOwnProperty.call(message, "expiresMs") && (typeof message.expiresMs === "object" ? message.expiresMs.low || message.expiresMs.high : message.expiresMs !== 0))
                    writer.uint32(/* id 2, wireType 0 =*/16).int64(message.expiresMs);
                if (message.unlock != null && $Object.hasOwnProperty.call(message, "unlock"))
                    $root.lockgate.v1.Unlock.encode(message.unlock, writer.uint32(/* id 3, wireType 2 =*/26).fork(), _depth + 1).ldelim();
                if (message.lock != null && $Object.hasOwnProperty.call(message, "lock"))
                    $root.lockgate.v1.Lock.encode(message.lock, writer.uint32(/* id 4, wireType 2 =*/34).fork(), _depth + 1).ldelim();
                if (message.siren != null && $Object.hasOwnProperty.call(message, "siren"))
                    $root.lockgate.v1.Siren.encode(message.siren, writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
                if (message.locateGps != null && $Object.hasOwnProperty.call(message, "locateGps"))
                    $root.lockgate.v1.LocateGps.encode(message.locateGps, writer.uint32(/* id 6, wireType 2 =*/50).fork(), _depth + 1).ldelim();
                if (message.locateCell != null && $Object.hasOwnProperty.call(message, "locateCell"))
                    $root.lockgate.v1.LocateCell.encode(message.locateCell, writer.uint32(/* id 7, wireType 2 =*/58).fork(), _depth + 1).ldelim();
                if (message.setPower != null && $Object.hasOwnProperty.call(message, "setPower"))
                    $root.lockgate.v1.SetPower.encode(message.setPower, writer.uint32(/* id 8, wireType 2 =*/66).fork(), _depth + 1).ldelim();
                if (message.reset != null && $Object.hasOwnProperty.call(message, "reset"))
                    $root.lockgate.v1.Reset.encode(message.reset, writer.uint32(/* id 9, wireType 2 =*/74).fork(), _depth + 1).ldelim();
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a Downlink message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.Downlink
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.Downlink & lockgate.v1.Downlink.$Shape} Downlink
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            Downlink.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.Downlink();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.id = value;
                            else
                                delete message.id;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (typeof (value = reader.int64()) === "object" ? value.low || value.high : value !== 0)
                                message.expiresMs = value;
                            else
                                delete message.expiresMs;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 2)
                                break;
                            message.unlock = $root.lockgate.v1.Unlock.decode(reader, reader.size(), $undefined, _depth + 1, message.unlock);
                            message.command = "unlock";
                            continue;
                        }
                    case 4: {
                            if (wireType !== 2)
                                break;
                            message.lock = $root.lockgate.v1.Lock.decode(reader, reader.size(), $undefined, _depth + 1, message.lock);
                            message.command = "lock";
                            continue;
                        }
                    case 5: {
                            if (wireType !== 2)
                                break;
                            message.siren = $root.lockgate.v1.Siren.decode(reader, reader.size(), $undefined, _depth + 1, message.siren);
                            message.command = "siren";
                            continue;
                        }
                    case 6: {
                            if (wireType !== 2)
                                break;
                            message.locateGps = $root.lockgate.v1.LocateGps.decode(reader, reader.size(), $undefined, _depth + 1, message.locateGps);
                            message.command = "locateGps";
                            continue;
                        }
                    case 7: {
                            if (wireType !== 2)
                                break;
                            message.locateCell = $root.lockgate.v1.LocateCell.decode(reader, reader.size(), $undefined, _depth + 1, message.locateCell);
                            message.command = "locateCell";
                            continue;
                        }
                    case 8: {
                            if (wireType !== 2)
                                break;
                            message.setPower = $root.lockgate.v1.SetPower.decode(reader, reader.size(), $undefined, _depth + 1, message.setPower);
                            message.command = "setPower";
                            continue;
                        }
                    case 9: {
                            if (wireType !== 2)
                                break;
                            message.reset = $root.lockgate.v1.Reset.decode(reader, reader.size(), $undefined, _depth + 1, message.reset);
                            message.command = "reset";
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Downlink;
        })();

        v1.Unlock = (function() {

            /**
             * Properties of an Unlock.
             * @typedef {Object} lockgate.v1.Unlock.$Properties
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of an Unlock.
             * @memberof lockgate.v1
             * @interface IUnlock
             * @augments lockgate.v1.Unlock.$Properties
             * @deprecated Use lockgate.v1.Unlock.$Properties instead.
             */

            /**
             * Shape of an Unlock.
             * @typedef {lockgate.v1.Unlock.$Properties} lockgate.v1.Unlock.$Shape
             */

            /**
             * Constructs a new Unlock.
             * @memberof lockgate.v1
             * @classdesc Represents an Unlock.
             * @constructor
             * @param {lockgate.v1.Unlock.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const Unlock = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * Creates a new Unlock instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.Unlock
             * @static
             * @param {lockgate.v1.Unlock.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.Unlock} Unlock instance
             * @type {{
             *   (properties: lockgate.v1.Unlock.$Shape): lockgate.v1.Unlock & lockgate.v1.Unlock.$Shape;
             *   (properties?: lockgate.v1.Unlock.$Properties): lockgate.v1.Unlock;
             * }}
             */
            Unlock.create = function(properties) {
                return new Unlock(properties);
            };

            /**
             * Encodes the specified Unlock message. Does not implicitly {@link lockgate.v1.Unlock.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.Unlock
             * @static
             * @param {lockgate.v1.Unlock.$Properties} message Unlock message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            Unlock.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes an Unlock message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.Unlock
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.Unlock & lockgate.v1.Unlock.$Shape} Unlock
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            Unlock.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.Unlock();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    reader.skipType(tag & 7, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Unlock;
        })();

        v1.Lock = (function() {

            /**
             * Properties of a Lock.
             * @typedef {Object} lockgate.v1.Lock.$Properties
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a Lock.
             * @memberof lockgate.v1
             * @interface ILock
             * @augments lockgate.v1.Lock.$Properties
             * @deprecated Use lockgate.v1.Lock.$Properties instead.
             */

            /**
             * Shape of a Lock.
             * @typedef {lockgate.v1.Lock.$Properties} lockgate.v1.Lock.$Shape
             */

            /**
             * Constructs a new Lock.
             * @memberof lockgate.v1
             * @classdesc The lock first gives a warning tone of 5 s.
             * @constructor
             * @param {lockgate.v1.Lock.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const Lock = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * Creates a new Lock instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.Lock
             * @static
             * @param {lockgate.v1.Lock.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.Lock} Lock instance
             * @type {{
             *   (properties: lockgate.v1.Lock.$Shape): lockgate.v1.Lock & lockgate.v1.Lock.$Shape;
             *   (properties?: lockgate.v1.Lock.$Properties): lockgate.v1.Lock;
             * }}
             */
            Lock.create = function(properties) {
                return new Lock(properties);
            };

            /**
             * Encodes the specified Lock message. Does not implicitly {@link lockgate.v1.Lock.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.Lock
             * @static
             * @param {lockgate.v1.Lock.$Properties} message Lock message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            Lock.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a Lock message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.Lock
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.Lock & lockgate.v1.Lock.$Shape} Lock
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            Lock.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.Lock();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    reader.skipType(tag & 7, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Lock;
        })();

        v1.Siren = (function() {

            /**
             * Properties of a Siren.
             * @typedef {Object} lockgate.v1.Siren.$Properties
             * @property {number|null} [seconds] Siren seconds
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a Siren.
             * @memberof lockgate.v1
             * @interface ISiren
             * @augments lockgate.v1.Siren.$Properties
             * @deprecated Use lockgate.v1.Siren.$Properties instead.
             */

            /**
             * Shape of a Siren.
             * @typedef {lockgate.v1.Siren.$Properties} lockgate.v1.Siren.$Shape
             */

            /**
             * Constructs a new Siren.
             * @memberof lockgate.v1
             * @classdesc Represents a Siren.
             * @constructor
             * @param {lockgate.v1.Siren.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const Siren = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * Siren seconds.
             * @member {number} seconds
             * @memberof lockgate.v1.Siren
             * @instance
             */
            Siren.prototype.seconds = 0;

            /**
             * Creates a new Siren instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.Siren
             * @static
             * @param {lockgate.v1.Siren.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.Siren} Siren instance
             * @type {{
             *   (properties: lockgate.v1.Siren.$Shape): lockgate.v1.Siren & lockgate.v1.Siren.$Shape;
             *   (properties?: lockgate.v1.Siren.$Properties): lockgate.v1.Siren;
             * }}
             */
            Siren.create = function(properties) {
                return new Siren(properties);
            };

            /**
             * Encodes the specified Siren message. Does not implicitly {@link lockgate.v1.Siren.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.Siren
             * @static
             * @param {lockgate.v1.Siren.$Properties} message Siren message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            Siren.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.seconds != null && $Object.hasOwnProperty.call(message, "seconds") && message.seconds !== 0)
                    writer.uint32(/* id 1, wireType 0 =*/8).uint32(message.seconds);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a Siren message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.Siren
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.Siren & lockgate.v1.Siren.$Shape} Siren
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            Siren.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.Siren();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.seconds = value;
                            else
                                delete message.seconds;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Siren;
        })();

        v1.LocateGps = (function() {

            /**
             * Properties of a LocateGps.
             * @typedef {Object} lockgate.v1.LocateGps.$Properties
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a LocateGps.
             * @memberof lockgate.v1
             * @interface ILocateGps
             * @augments lockgate.v1.LocateGps.$Properties
             * @deprecated Use lockgate.v1.LocateGps.$Properties instead.
             */

            /**
             * Shape of a LocateGps.
             * @typedef {lockgate.v1.LocateGps.$Properties} lockgate.v1.LocateGps.$Shape
             */

            /**
             * Constructs a new LocateGps.
             * @memberof lockgate.v1
             * @classdesc Represents a LocateGps.
             * @constructor
             * @param {lockgate.v1.LocateGps.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const LocateGps = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * Creates a new LocateGps instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.LocateGps
             * @static
             * @param {lockgate.v1.LocateGps.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.LocateGps} LocateGps instance
             * @type {{
             *   (properties: lockgate.v1.LocateGps.$Shape): lockgate.v1.LocateGps & lockgate.v1.LocateGps.$Shape;
             *   (properties?: lockgate.v1.LocateGps.$Properties): lockgate.v1.LocateGps;
             * }}
             */
            LocateGps.create = function(properties) {
                return new LocateGps(properties);
            };

            /**
             * Encodes the specified LocateGps message. Does not implicitly {@link lockgate.v1.LocateGps.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.LocateGps
             * @static
             * @param {lockgate.v1.LocateGps.$Properties} message LocateGps message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            LocateGps.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a LocateGps message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.LocateGps
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.LocateGps & lockgate.v1.LocateGps.$Shape} LocateGps
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            LocateGps.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.LocateGps();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    reader.skipType(tag & 7, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return LocateGps;
        })();

        v1.LocateCell = (function() {

            /**
             * Properties of a LocateCell.
             * @typedef {Object} lockgate.v1.LocateCell.$Properties
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a LocateCell.
             * @memberof lockgate.v1
             * @interface ILocateCell
             * @augments lockgate.v1.LocateCell.$Properties
             * @deprecated Use lockgate.v1.LocateCell.$Properties instead.
             */

            /**
             * Shape of a LocateCell.
             * @typedef {lockgate.v1.LocateCell.$Properties} lockgate.v1.LocateCell.$Shape
             */

            /**
             * Constructs a new LocateCell.
             * @memberof lockgate.v1
             * @classdesc Represents a LocateCell.
             * @constructor
             * @param {lockgate.v1.LocateCell.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const LocateCell = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * Creates a new LocateCell instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.LocateCell
             * @static
             * @param {lockgate.v1.LocateCell.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.LocateCell} LocateCell instance
             * @type {{
             *   (properties: lockgate.v1.LocateCell.$Shape): lockgate.v1.LocateCell & lockgate.v1.LocateCell.$Shape;
             *   (properties?: lockgate.v1.LocateCell.$Properties): lockgate.v1.LocateCell;
             * }}
             */
            LocateCell.create = function(properties) {
                return new LocateCell(properties);
            };

            /**
             * Encodes the specified LocateCell message. Does not implicitly {@link lockgate.v1.LocateCell.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.LocateCell
             * @static
             * @param {lockgate.v1.LocateCell.$Properties} message LocateCell message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            LocateCell.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a LocateCell message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.LocateCell
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.LocateCell & lockgate.v1.LocateCell.$Shape} LocateCell
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            LocateCell.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.LocateCell();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    reader.skipType(tag & 7, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return LocateCell;
        })();

        v1.SetPower = (function() {

            /**
             * Properties of a SetPower.
             * @typedef {Object} lockgate.v1.SetPower.$Properties
             * @property {lockgate.v1.Mode|null} [mode] SetPower mode
             * @property {boolean|null} [rideTracking] SetPower rideTracking
             * @property {boolean|null} [airplane] SetPower airplane
             * @property {boolean|null} [recovery] SetPower recovery
             * @property {lockgate.v1.HighWindow.$Properties|null} [highWindow] SetPower highWindow
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a SetPower.
             * @memberof lockgate.v1
             * @interface ISetPower
             * @augments lockgate.v1.SetPower.$Properties
             * @deprecated Use lockgate.v1.SetPower.$Properties instead.
             */

            /**
             * Shape of a SetPower.
             * @typedef {lockgate.v1.SetPower.$Properties} lockgate.v1.SetPower.$Shape
             */

            /**
             * Constructs a new SetPower.
             * @memberof lockgate.v1
             * @classdesc Absent settings stay unchanged.
             * @constructor
             * @param {lockgate.v1.SetPower.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const SetPower = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * SetPower mode.
             * @member {lockgate.v1.Mode|null|undefined} mode
             * @memberof lockgate.v1.SetPower
             * @instance
             */
            SetPower.prototype.mode = null;

            /**
             * SetPower rideTracking.
             * @member {boolean|null|undefined} rideTracking
             * @memberof lockgate.v1.SetPower
             * @instance
             */
            SetPower.prototype.rideTracking = null;

            /**
             * SetPower airplane.
             * @member {boolean|null|undefined} airplane
             * @memberof lockgate.v1.SetPower
             * @instance
             */
            SetPower.prototype.airplane = null;

            /**
             * SetPower recovery.
             * @member {boolean|null|undefined} recovery
             * @memberof lockgate.v1.SetPower
             * @instance
             */
            SetPower.prototype.recovery = null;

            /**
             * SetPower highWindow.
             * @member {lockgate.v1.HighWindow.$Properties|null|undefined} highWindow
             * @memberof lockgate.v1.SetPower
             * @instance
             */
            SetPower.prototype.highWindow = null;

            // OneOf field names bound to virtual getters and setters
            let $oneOfFields;

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(SetPower.prototype, "_mode", {
                get: $util.oneOfGetter($oneOfFields = ["mode"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(SetPower.prototype, "_rideTracking", {
                get: $util.oneOfGetter($oneOfFields = ["rideTracking"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(SetPower.prototype, "_airplane", {
                get: $util.oneOfGetter($oneOfFields = ["airplane"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(SetPower.prototype, "_recovery", {
                get: $util.oneOfGetter($oneOfFields = ["recovery"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            /**
             * Creates a new SetPower instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.SetPower
             * @static
             * @param {lockgate.v1.SetPower.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.SetPower} SetPower instance
             * @type {{
             *   (properties: lockgate.v1.SetPower.$Shape): lockgate.v1.SetPower & lockgate.v1.SetPower.$Shape;
             *   (properties?: lockgate.v1.SetPower.$Properties): lockgate.v1.SetPower;
             * }}
             */
            SetPower.create = function(properties) {
                return new SetPower(properties);
            };

            /**
             * Encodes the specified SetPower message. Does not implicitly {@link lockgate.v1.SetPower.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.SetPower
             * @static
             * @param {lockgate.v1.SetPower.$Properties} message SetPower message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            SetPower.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.mode != null && $Object.hasOwnProperty.call(message, "mode"))
                    writer.uint32(/* id 1, wireType 0 =*/8).int32(message.mode);
                if (message.rideTracking != null && $Object.hasOwnProperty.call(message, "rideTracking"))
                    writer.uint32(/* id 2, wireType 0 =*/16).bool(message.rideTracking);
                if (message.airplane != null && $Object.hasOwnProperty.call(message, "airplane"))
                    writer.uint32(/* id 3, wireType 0 =*/24).bool(message.airplane);
                if (message.recovery != null && $Object.hasOwnProperty.call(message, "recovery"))
                    writer.uint32(/* id 4, wireType 0 =*/32).bool(message.recovery);
                if (message.highWindow != null && $Object.hasOwnProperty.call(message, "highWindow"))
                    $root.lockgate.v1.HighWindow.encode(message.highWindow, writer.uint32(/* id 5, wireType 2 =*/42).fork(), _depth + 1).ldelim();
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a SetPower message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.SetPower
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.SetPower & lockgate.v1.SetPower.$Shape} SetPower
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            SetPower.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.SetPower();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            message.mode = reader.int32();
                            message._mode = "mode";
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            message.rideTracking = reader.bool();
                            message._rideTracking = "rideTracking";
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            message.airplane = reader.bool();
                            message._airplane = "airplane";
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            message.recovery = reader.bool();
                            message._recovery = "recovery";
                            continue;
                        }
                    case 5: {
                            if (wireType !== 2)
                                break;
                            message.highWindow = $root.lockgate.v1.HighWindow.decode(reader, reader.size(), $undefined, _depth + 1, message.highWindow);
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return SetPower;
        })();

        v1.Reset = (function() {

            /**
             * Properties of a Reset.
             * @typedef {Object} lockgate.v1.Reset.$Properties
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */

            /**
             * Properties of a Reset.
             * @memberof lockgate.v1
             * @interface IReset
             * @augments lockgate.v1.Reset.$Properties
             * @deprecated Use lockgate.v1.Reset.$Properties instead.
             */

            /**
             * Shape of a Reset.
             * @typedef {lockgate.v1.Reset.$Properties} lockgate.v1.Reset.$Shape
             */

            /**
             * Constructs a new Reset.
             * @memberof lockgate.v1
             * @classdesc Restart the modem. This is not a boot of the lock.
             * @constructor
             * @param {lockgate.v1.Reset.$Properties=} [properties] Properties to set
             * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
             */
            const Reset = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            /**
             * Creates a new Reset instance using the specified properties.
             * @function create
             * @memberof lockgate.v1.Reset
             * @static
             * @param {lockgate.v1.Reset.$Properties=} [properties] Properties to set
             * @returns {lockgate.v1.Reset} Reset instance
             * @type {{
             *   (properties: lockgate.v1.Reset.$Shape): lockgate.v1.Reset & lockgate.v1.Reset.$Shape;
             *   (properties?: lockgate.v1.Reset.$Properties): lockgate.v1.Reset;
             * }}
             */
            Reset.create = function(properties) {
                return new Reset(properties);
            };

            /**
             * Encodes the specified Reset message. Does not implicitly {@link lockgate.v1.Reset.verify|verify} messages.
             * @function encode
             * @memberof lockgate.v1.Reset
             * @static
             * @param {lockgate.v1.Reset.$Properties} message Reset message or plain object to encode
             * @param {$protobuf.Writer} [writer] Writer to encode to
             * @returns {$protobuf.Writer} Writer
             */
            Reset.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            /**
             * Decodes a Reset message from the specified reader or buffer.
             * @function decode
             * @memberof lockgate.v1.Reset
             * @static
             * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
             * @param {number} [length] Message length if known beforehand
             * @returns {lockgate.v1.Reset & lockgate.v1.Reset.$Shape} Reset
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            Reset.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.lockgate.v1.Reset();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    reader.skipType(tag & 7, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Reset;
        })();

        return v1;
    })();

    return lockgate;
})();

export {
  $root as default
};
