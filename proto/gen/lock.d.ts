// Generated from lock.proto by `npm run gen`. Change the schema and run it again instead of editing this.
import * as $protobuf from "protobufjs/minimal.js";
import type Long from "long";

/** Namespace lockgate. */
export namespace lockgate {

    /** Namespace v1. */
    namespace v1 {

        /**
         * Properties of an Uplink.
         * @deprecated Use lockgate.v1.Uplink.$Properties instead.
         */
        interface IUplink extends lockgate.v1.Uplink.$Properties {
        }

        /** Published by a lock, or by a phone that acts for it, to the topic `up`. At most 1,024 bytes. */
        class Uplink {

            /**
             * Constructs a new Uplink.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.Uplink.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** A counter in flash that increases at each boot of the lock. A reset of the modem is not a boot. */
            boot?: (number|null);

            /** 1, 2, 3 … since boot, one per uplink made. Reconnecting does not restart it. */
            sequence?: (number|null);

            /** When the lock made the uplink, by its own clock, in ms since 1970-01-01T00:00:00Z. May be negative (wrong clock). */
            timeMs?: (Long|null);

            /** The lock's power settings. Absent means MID with every switch off. */
            power?: (lockgate.v1.Power.$Properties|null);

            /** How many uplinks made earlier still wait in the lock. */
            kept: number;

            /** How many uplinks the lock has discarded since boot because its buffer was full. */
            dropped: number;

            /** Uplink cellular. */
            cellular?: (lockgate.v1.CellularPing.$Properties|null);

            /** Uplink gps. */
            gps?: (lockgate.v1.GpsPing.$Properties|null);

            /** Uplink closeConnection. */
            closeConnection?: (lockgate.v1.CloseConnectionPing.$Properties|null);

            /** Uplink commandAck. */
            commandAck?: (lockgate.v1.CommandAck.$Properties|null);

            /** Uplink body. */
            body?: ("cellular"|"gps"|"closeConnection"|"commandAck");

            /**
             * Creates a new Uplink instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Uplink instance
             */
            static create(properties: lockgate.v1.Uplink.$Shape): lockgate.v1.Uplink & lockgate.v1.Uplink.$Shape;
            static create(properties?: lockgate.v1.Uplink.$Properties): lockgate.v1.Uplink;

            /**
             * Encodes the specified Uplink message. Does not implicitly {@link lockgate.v1.Uplink.verify|verify} messages.
             * @param message Uplink message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.Uplink.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes an Uplink message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.Uplink & lockgate.v1.Uplink.$Shape} Uplink
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.Uplink & lockgate.v1.Uplink.$Shape;
        }

        namespace Uplink {

            /** Properties of an Uplink. */
            interface $Properties {

                /** A counter in flash that increases at each boot of the lock. A reset of the modem is not a boot. */
                boot?: (number|null);

                /** 1, 2, 3 … since boot, one per uplink made. Reconnecting does not restart it. */
                sequence?: (number|null);

                /** When the lock made the uplink, by its own clock, in ms since 1970-01-01T00:00:00Z. May be negative (wrong clock). */
                timeMs?: (Long|null);

                /** The lock's power settings. Absent means MID with every switch off. */
                power?: (lockgate.v1.Power.$Properties|null);

                /** How many uplinks made earlier still wait in the lock. */
                kept?: (number|null);

                /** How many uplinks the lock has discarded since boot because its buffer was full. */
                dropped?: (number|null);

                /** Uplink cellular */
                cellular?: (lockgate.v1.CellularPing.$Properties|null);

                /** Uplink gps */
                gps?: (lockgate.v1.GpsPing.$Properties|null);

                /** Uplink closeConnection */
                closeConnection?: (lockgate.v1.CloseConnectionPing.$Properties|null);

                /** Uplink commandAck */
                commandAck?: (lockgate.v1.CommandAck.$Properties|null);

                /** Uplink body */
                body?: ("cellular"|"gps"|"closeConnection"|"commandAck");

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Narrowed shape of an Uplink. */
            type $Shape = {
              boot?: number|null;
              sequence?: number|null;
              timeMs?: Long|null;
              power?: lockgate.v1.Power.$Shape|null;
              kept?: number|null;
              dropped?: number|null;
              cellular?: lockgate.v1.CellularPing.$Shape|null;
              gps?: lockgate.v1.GpsPing.$Shape|null;
              closeConnection?: lockgate.v1.CloseConnectionPing.$Shape|null;
              commandAck?: lockgate.v1.CommandAck.$Shape|null;
              $unknowns?: Uint8Array[];
            } & (
              ({ body?: undefined; cellular?: null; gps?: null; closeConnection?: null; commandAck?: null }|{ body?: "cellular"; cellular: lockgate.v1.CellularPing.$Shape; gps?: null; closeConnection?: null; commandAck?: null }|{ body?: "gps"; cellular?: null; gps: lockgate.v1.GpsPing.$Shape; closeConnection?: null; commandAck?: null }|{ body?: "closeConnection"; cellular?: null; gps?: null; closeConnection: lockgate.v1.CloseConnectionPing.$Shape; commandAck?: null }|{ body?: "commandAck"; cellular?: null; gps?: null; closeConnection?: null; commandAck: lockgate.v1.CommandAck.$Shape })
            );
        }

        /** Mode enum. */
        enum Mode {

            /** MODE_MID value */
            MODE_MID = 0,

            /** MODE_HIGH value */
            MODE_HIGH = 1
        }

        /**
         * Properties of a Power.
         * @deprecated Use lockgate.v1.Power.$Properties instead.
         */
        interface IPower extends lockgate.v1.Power.$Properties {
        }

        /** Represents a Power. */
        class Power {

            /**
             * Constructs a new Power.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.Power.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Power mode. */
            mode: lockgate.v1.Mode;

            /** Power rideTracking. */
            rideTracking: boolean;

            /** Power airplane. */
            airplane: boolean;

            /** Power recovery. */
            recovery: boolean;

            /**
             * Creates a new Power instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Power instance
             */
            static create(properties: lockgate.v1.Power.$Shape): lockgate.v1.Power & lockgate.v1.Power.$Shape;
            static create(properties?: lockgate.v1.Power.$Properties): lockgate.v1.Power;

            /**
             * Encodes the specified Power message. Does not implicitly {@link lockgate.v1.Power.verify|verify} messages.
             * @param message Power message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.Power.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Power message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.Power & lockgate.v1.Power.$Shape} Power
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.Power & lockgate.v1.Power.$Shape;
        }

        namespace Power {

            /** Properties of a Power. */
            interface $Properties {

                /** Power mode */
                mode?: (lockgate.v1.Mode|null);

                /** Power rideTracking */
                rideTracking?: (boolean|null);

                /** Power airplane */
                airplane?: (boolean|null);

                /** Power recovery */
                recovery?: (boolean|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Power. */
            type $Shape = lockgate.v1.Power.$Properties;
        }

        /** LockState enum. */
        enum LockState {

            /** LOCK_STATE_UNKNOWN value */
            LOCK_STATE_UNKNOWN = 0,

            /** LOCK_STATE_LOCKED value */
            LOCK_STATE_LOCKED = 1,

            /** LOCK_STATE_UNLOCKED value */
            LOCK_STATE_UNLOCKED = 2
        }

        /** TetherState enum. */
        enum TetherState {

            /** TETHER_STATE_UNKNOWN value */
            TETHER_STATE_UNKNOWN = 0,

            /** TETHER_STATE_ATTACHED value */
            TETHER_STATE_ATTACHED = 1,

            /** TETHER_STATE_DETACHED value */
            TETHER_STATE_DETACHED = 2
        }

        /** Why a ping was sent. An unknown number is preserved and shown as REASON_UNRECOGNIZED_<n>. */
        enum Reason {

            /** REASON_UNSPECIFIED value */
            REASON_UNSPECIFIED = 0,

            /** REASON_THEFT value */
            REASON_THEFT = 1,

            /** REASON_PERIOD_TRACKING value */
            REASON_PERIOD_TRACKING = 2,

            /** REASON_STATE_PING value */
            REASON_STATE_PING = 3,

            /** REASON_UNLOCKED_PING value */
            REASON_UNLOCKED_PING = 4,

            /** REASON_UNLOCKED_MOVEMENT value */
            REASON_UNLOCKED_MOVEMENT = 5,

            /** REASON_GPS_PING value */
            REASON_GPS_PING = 6,

            /** REASON_CELL_PING value */
            REASON_CELL_PING = 7,

            /** REASON_NETWORK_PING value */
            REASON_NETWORK_PING = 8,

            /** REASON_RESET value */
            REASON_RESET = 9,

            /** REASON_CLOSE_CONNECTION value */
            REASON_CLOSE_CONNECTION = 10,

            /** The specification calls this value PHONE, without the prefix that buf requires. */
            REASON_PHONE = 11
        }

        /**
         * Properties of a CellularPing.
         * @deprecated Use lockgate.v1.CellularPing.$Properties instead.
         */
        interface ICellularPing extends lockgate.v1.CellularPing.$Properties {
        }

        /** Represents a CellularPing. */
        class CellularPing {

            /**
             * Constructs a new CellularPing.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.CellularPing.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** CellularPing reason. */
            reason: lockgate.v1.Reason;

            /** CellularPing lockState. */
            lockState: lockgate.v1.LockState;

            /** CellularPing batteryPercent. */
            batteryPercent: number;

            /** CellularPing firmwareVersion. */
            firmwareVersion: string;

            /** Absent when no e-bike is connected. */
            ebikeMillivolts?: (number|null);

            /** CellularPing tetherState. */
            tetherState: lockgate.v1.TetherState;

            /** A position, with REASON_CELL_PING and from a phone: both coordinates or neither. */
            latitudeE7?: (number|null);

            /** CellularPing longitudeE7. */
            longitudeE7?: (number|null);

            /** CellularPing uncertaintyM. */
            uncertaintyM?: (number|null);

            /**
             * Creates a new CellularPing instance using the specified properties.
             * @param [properties] Properties to set
             * @returns CellularPing instance
             */
            static create(properties: lockgate.v1.CellularPing.$Shape): lockgate.v1.CellularPing & lockgate.v1.CellularPing.$Shape;
            static create(properties?: lockgate.v1.CellularPing.$Properties): lockgate.v1.CellularPing;

            /**
             * Encodes the specified CellularPing message. Does not implicitly {@link lockgate.v1.CellularPing.verify|verify} messages.
             * @param message CellularPing message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.CellularPing.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a CellularPing message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.CellularPing & lockgate.v1.CellularPing.$Shape} CellularPing
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.CellularPing & lockgate.v1.CellularPing.$Shape;
        }

        namespace CellularPing {

            /** Properties of a CellularPing. */
            interface $Properties {

                /** CellularPing reason */
                reason?: (lockgate.v1.Reason|null);

                /** CellularPing lockState */
                lockState?: (lockgate.v1.LockState|null);

                /** CellularPing batteryPercent */
                batteryPercent?: (number|null);

                /** CellularPing firmwareVersion */
                firmwareVersion?: (string|null);

                /** Absent when no e-bike is connected. */
                ebikeMillivolts?: (number|null);

                /** CellularPing tetherState */
                tetherState?: (lockgate.v1.TetherState|null);

                /** A position, with REASON_CELL_PING and from a phone: both coordinates or neither. */
                latitudeE7?: (number|null);

                /** CellularPing longitudeE7 */
                longitudeE7?: (number|null);

                /** CellularPing uncertaintyM */
                uncertaintyM?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a CellularPing. */
            type $Shape = lockgate.v1.CellularPing.$Properties;
        }

        /**
         * Properties of a GpsPing.
         * @deprecated Use lockgate.v1.GpsPing.$Properties instead.
         */
        interface IGpsPing extends lockgate.v1.GpsPing.$Properties {
        }

        /** Represents a GpsPing. */
        class GpsPing {

            /**
             * Constructs a new GpsPing.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.GpsPing.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** GpsPing reason. */
            reason: lockgate.v1.Reason;

            /** GpsPing lockState. */
            lockState: lockgate.v1.LockState;

            /** GpsPing batteryPercent. */
            batteryPercent: number;

            /** GpsPing ebikeMillivolts. */
            ebikeMillivolts?: (number|null);

            /** GpsPing tetherState. */
            tetherState: lockgate.v1.TetherState;

            /** Degrees × 10⁷. Values outside the valid range are possible on purpose: the gateway stores and judges them. */
            latitudeE7: number;

            /** GpsPing longitudeE7. */
            longitudeE7: number;

            /** GpsPing speedCmPerS. */
            speedCmPerS: number;

            /** Hundredths of a degree, clockwise from north. */
            directionCentidegrees: number;

            /** GpsPing uncertaintyM. */
            uncertaintyM: number;

            /**
             * Creates a new GpsPing instance using the specified properties.
             * @param [properties] Properties to set
             * @returns GpsPing instance
             */
            static create(properties: lockgate.v1.GpsPing.$Shape): lockgate.v1.GpsPing & lockgate.v1.GpsPing.$Shape;
            static create(properties?: lockgate.v1.GpsPing.$Properties): lockgate.v1.GpsPing;

            /**
             * Encodes the specified GpsPing message. Does not implicitly {@link lockgate.v1.GpsPing.verify|verify} messages.
             * @param message GpsPing message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.GpsPing.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a GpsPing message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.GpsPing & lockgate.v1.GpsPing.$Shape} GpsPing
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.GpsPing & lockgate.v1.GpsPing.$Shape;
        }

        namespace GpsPing {

            /** Properties of a GpsPing. */
            interface $Properties {

                /** GpsPing reason */
                reason?: (lockgate.v1.Reason|null);

                /** GpsPing lockState */
                lockState?: (lockgate.v1.LockState|null);

                /** GpsPing batteryPercent */
                batteryPercent?: (number|null);

                /** GpsPing ebikeMillivolts */
                ebikeMillivolts?: (number|null);

                /** GpsPing tetherState */
                tetherState?: (lockgate.v1.TetherState|null);

                /** Degrees × 10⁷. Values outside the valid range are possible on purpose: the gateway stores and judges them. */
                latitudeE7?: (number|null);

                /** GpsPing longitudeE7 */
                longitudeE7?: (number|null);

                /** GpsPing speedCmPerS */
                speedCmPerS?: (number|null);

                /** Hundredths of a degree, clockwise from north. */
                directionCentidegrees?: (number|null);

                /** GpsPing uncertaintyM */
                uncertaintyM?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a GpsPing. */
            type $Shape = lockgate.v1.GpsPing.$Properties;
        }

        /**
         * Properties of a CloseConnectionPing.
         * @deprecated Use lockgate.v1.CloseConnectionPing.$Properties instead.
         */
        interface ICloseConnectionPing extends lockgate.v1.CloseConnectionPing.$Properties {
        }

        /** The lock is about to leave the network. Its reason is REASON_CLOSE_CONNECTION by definition, so it is not sent. */
        class CloseConnectionPing {

            /**
             * Constructs a new CloseConnectionPing.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.CloseConnectionPing.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** CloseConnectionPing lockState. */
            lockState: lockgate.v1.LockState;

            /** CloseConnectionPing batteryPercent. */
            batteryPercent: number;

            /**
             * Creates a new CloseConnectionPing instance using the specified properties.
             * @param [properties] Properties to set
             * @returns CloseConnectionPing instance
             */
            static create(properties: lockgate.v1.CloseConnectionPing.$Shape): lockgate.v1.CloseConnectionPing & lockgate.v1.CloseConnectionPing.$Shape;
            static create(properties?: lockgate.v1.CloseConnectionPing.$Properties): lockgate.v1.CloseConnectionPing;

            /**
             * Encodes the specified CloseConnectionPing message. Does not implicitly {@link lockgate.v1.CloseConnectionPing.verify|verify} messages.
             * @param message CloseConnectionPing message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.CloseConnectionPing.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a CloseConnectionPing message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.CloseConnectionPing & lockgate.v1.CloseConnectionPing.$Shape} CloseConnectionPing
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.CloseConnectionPing & lockgate.v1.CloseConnectionPing.$Shape;
        }

        namespace CloseConnectionPing {

            /** Properties of a CloseConnectionPing. */
            interface $Properties {

                /** CloseConnectionPing lockState */
                lockState?: (lockgate.v1.LockState|null);

                /** CloseConnectionPing batteryPercent */
                batteryPercent?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a CloseConnectionPing. */
            type $Shape = lockgate.v1.CloseConnectionPing.$Properties;
        }

        /** CommandResult enum. */
        enum CommandResult {

            /** COMMAND_RESULT_UNSPECIFIED value */
            COMMAND_RESULT_UNSPECIFIED = 0,

            /** COMMAND_RESULT_OK value */
            COMMAND_RESULT_OK = 1,

            /** COMMAND_RESULT_REJECTED value */
            COMMAND_RESULT_REJECTED = 2,

            /** COMMAND_RESULT_FAILED value */
            COMMAND_RESULT_FAILED = 3
        }

        /**
         * Properties of a CommandAck.
         * @deprecated Use lockgate.v1.CommandAck.$Properties instead.
         */
        interface ICommandAck extends lockgate.v1.CommandAck.$Properties {
        }

        /** Represents a CommandAck. */
        class CommandAck {

            /**
             * Constructs a new CommandAck.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.CommandAck.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** CommandAck id. */
            id: number;

            /** CommandAck result. */
            result: lockgate.v1.CommandResult;

            /** A short reason for users. */
            detail: string;

            /** After set-power: the high window now in force. */
            highWindow?: (lockgate.v1.HighWindow.$Properties|null);

            /**
             * Creates a new CommandAck instance using the specified properties.
             * @param [properties] Properties to set
             * @returns CommandAck instance
             */
            static create(properties: lockgate.v1.CommandAck.$Shape): lockgate.v1.CommandAck & lockgate.v1.CommandAck.$Shape;
            static create(properties?: lockgate.v1.CommandAck.$Properties): lockgate.v1.CommandAck;

            /**
             * Encodes the specified CommandAck message. Does not implicitly {@link lockgate.v1.CommandAck.verify|verify} messages.
             * @param message CommandAck message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.CommandAck.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a CommandAck message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.CommandAck & lockgate.v1.CommandAck.$Shape} CommandAck
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.CommandAck & lockgate.v1.CommandAck.$Shape;
        }

        namespace CommandAck {

            /** Properties of a CommandAck. */
            interface $Properties {

                /** CommandAck id */
                id?: (number|null);

                /** CommandAck result */
                result?: (lockgate.v1.CommandResult|null);

                /** A short reason for users. */
                detail?: (string|null);

                /** After set-power: the high window now in force. */
                highWindow?: (lockgate.v1.HighWindow.$Properties|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a CommandAck. */
            type $Shape = lockgate.v1.CommandAck.$Properties;
        }

        /**
         * Properties of a HighWindow.
         * @deprecated Use lockgate.v1.HighWindow.$Properties instead.
         */
        interface IHighWindow extends lockgate.v1.HighWindow.$Properties {
        }

        /** When HIGH keeps the connection. Equal minutes mean the whole day; if from_minute is greater, it runs over midnight. */
        class HighWindow {

            /**
             * Constructs a new HighWindow.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.HighWindow.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** HighWindow fromMinute. */
            fromMinute: number;

            /** HighWindow toMinute. */
            toMinute: number;

            /** HighWindow utcOffsetMinutes. */
            utcOffsetMinutes: number;

            /**
             * Creates a new HighWindow instance using the specified properties.
             * @param [properties] Properties to set
             * @returns HighWindow instance
             */
            static create(properties: lockgate.v1.HighWindow.$Shape): lockgate.v1.HighWindow & lockgate.v1.HighWindow.$Shape;
            static create(properties?: lockgate.v1.HighWindow.$Properties): lockgate.v1.HighWindow;

            /**
             * Encodes the specified HighWindow message. Does not implicitly {@link lockgate.v1.HighWindow.verify|verify} messages.
             * @param message HighWindow message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.HighWindow.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a HighWindow message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.HighWindow & lockgate.v1.HighWindow.$Shape} HighWindow
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.HighWindow & lockgate.v1.HighWindow.$Shape;
        }

        namespace HighWindow {

            /** Properties of a HighWindow. */
            interface $Properties {

                /** HighWindow fromMinute */
                fromMinute?: (number|null);

                /** HighWindow toMinute */
                toMinute?: (number|null);

                /** HighWindow utcOffsetMinutes */
                utcOffsetMinutes?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a HighWindow. */
            type $Shape = lockgate.v1.HighWindow.$Properties;
        }

        /**
         * Properties of a Downlink.
         * @deprecated Use lockgate.v1.Downlink.$Properties instead.
         */
        interface IDownlink extends lockgate.v1.Downlink.$Properties {
        }

        /** Sent by the gateway to one client on the topic `down`. */
        class Downlink {

            /**
             * Constructs a new Downlink.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.Downlink.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** A lock carries out an id once, however often it arrives, and acknowledges it each time. */
            id: number;

            /** From this time on the lock must not carry out the command; ms since 1970-01-01T00:00:00Z. */
            expiresMs: Long;

            /** Downlink unlock. */
            unlock?: (lockgate.v1.Unlock.$Properties|null);

            /** Downlink lock. */
            lock?: (lockgate.v1.Lock.$Properties|null);

            /** Downlink siren. */
            siren?: (lockgate.v1.Siren.$Properties|null);

            /** Downlink locateGps. */
            locateGps?: (lockgate.v1.LocateGps.$Properties|null);

            /** Downlink locateCell. */
            locateCell?: (lockgate.v1.LocateCell.$Properties|null);

            /** Downlink setPower. */
            setPower?: (lockgate.v1.SetPower.$Properties|null);

            /** Downlink reset. */
            reset?: (lockgate.v1.Reset.$Properties|null);

            /** Downlink command. */
            command?: ("unlock"|"lock"|"siren"|"locateGps"|"locateCell"|"setPower"|"reset");

            /**
             * Creates a new Downlink instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Downlink instance
             */
            static create(properties: lockgate.v1.Downlink.$Shape): lockgate.v1.Downlink & lockgate.v1.Downlink.$Shape;
            static create(properties?: lockgate.v1.Downlink.$Properties): lockgate.v1.Downlink;

            /**
             * Encodes the specified Downlink message. Does not implicitly {@link lockgate.v1.Downlink.verify|verify} messages.
             * @param message Downlink message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.Downlink.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Downlink message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.Downlink & lockgate.v1.Downlink.$Shape} Downlink
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.Downlink & lockgate.v1.Downlink.$Shape;
        }

        namespace Downlink {

            /** Properties of a Downlink. */
            interface $Properties {

                /** A lock carries out an id once, however often it arrives, and acknowledges it each time. */
                id?: (number|null);

                /** From this time on the lock must not carry out the command; ms since 1970-01-01T00:00:00Z. */
                expiresMs?: (Long|null);

                /** Downlink unlock */
                unlock?: (lockgate.v1.Unlock.$Properties|null);

                /** Downlink lock */
                lock?: (lockgate.v1.Lock.$Properties|null);

                /** Downlink siren */
                siren?: (lockgate.v1.Siren.$Properties|null);

                /** Downlink locateGps */
                locateGps?: (lockgate.v1.LocateGps.$Properties|null);

                /** Downlink locateCell */
                locateCell?: (lockgate.v1.LocateCell.$Properties|null);

                /** Downlink setPower */
                setPower?: (lockgate.v1.SetPower.$Properties|null);

                /** Downlink reset */
                reset?: (lockgate.v1.Reset.$Properties|null);

                /** Downlink command */
                command?: ("unlock"|"lock"|"siren"|"locateGps"|"locateCell"|"setPower"|"reset");

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Narrowed shape of a Downlink. */
            type $Shape = {
              id?: number|null;
              expiresMs?: Long|null;
              unlock?: lockgate.v1.Unlock.$Shape|null;
              lock?: lockgate.v1.Lock.$Shape|null;
              siren?: lockgate.v1.Siren.$Shape|null;
              locateGps?: lockgate.v1.LocateGps.$Shape|null;
              locateCell?: lockgate.v1.LocateCell.$Shape|null;
              setPower?: lockgate.v1.SetPower.$Shape|null;
              reset?: lockgate.v1.Reset.$Shape|null;
              $unknowns?: Uint8Array[];
            } & (
              ({ command?: undefined; unlock?: null; lock?: null; siren?: null; locateGps?: null; locateCell?: null; setPower?: null; reset?: null }|{ command?: "unlock"; unlock: lockgate.v1.Unlock.$Shape; lock?: null; siren?: null; locateGps?: null; locateCell?: null; setPower?: null; reset?: null }|{ command?: "lock"; unlock?: null; lock: lockgate.v1.Lock.$Shape; siren?: null; locateGps?: null; locateCell?: null; setPower?: null; reset?: null }|{ command?: "siren"; unlock?: null; lock?: null; siren: lockgate.v1.Siren.$Shape; locateGps?: null; locateCell?: null; setPower?: null; reset?: null }|{ command?: "locateGps"; unlock?: null; lock?: null; siren?: null; locateGps: lockgate.v1.LocateGps.$Shape; locateCell?: null; setPower?: null; reset?: null }|{ command?: "locateCell"; unlock?: null; lock?: null; siren?: null; locateGps?: null; locateCell: lockgate.v1.LocateCell.$Shape; setPower?: null; reset?: null }|{ command?: "setPower"; unlock?: null; lock?: null; siren?: null; locateGps?: null; locateCell?: null; setPower: lockgate.v1.SetPower.$Shape; reset?: null }|{ command?: "reset"; unlock?: null; lock?: null; siren?: null; locateGps?: null; locateCell?: null; setPower?: null; reset: lockgate.v1.Reset.$Shape })
            );
        }

        /**
         * Properties of an Unlock.
         * @deprecated Use lockgate.v1.Unlock.$Properties instead.
         */
        interface IUnlock extends lockgate.v1.Unlock.$Properties {
        }

        /** Represents an Unlock. */
        class Unlock {

            /**
             * Constructs a new Unlock.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.Unlock.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /**
             * Creates a new Unlock instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Unlock instance
             */
            static create(properties: lockgate.v1.Unlock.$Shape): lockgate.v1.Unlock & lockgate.v1.Unlock.$Shape;
            static create(properties?: lockgate.v1.Unlock.$Properties): lockgate.v1.Unlock;

            /**
             * Encodes the specified Unlock message. Does not implicitly {@link lockgate.v1.Unlock.verify|verify} messages.
             * @param message Unlock message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.Unlock.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes an Unlock message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.Unlock & lockgate.v1.Unlock.$Shape} Unlock
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.Unlock & lockgate.v1.Unlock.$Shape;
        }

        namespace Unlock {

            /** Properties of an Unlock. */
            interface $Properties {

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of an Unlock. */
            type $Shape = lockgate.v1.Unlock.$Properties;
        }

        /**
         * Properties of a Lock.
         * @deprecated Use lockgate.v1.Lock.$Properties instead.
         */
        interface ILock extends lockgate.v1.Lock.$Properties {
        }

        /** The lock first gives a warning tone of 5 s. */
        class Lock {

            /**
             * Constructs a new Lock.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.Lock.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /**
             * Creates a new Lock instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Lock instance
             */
            static create(properties: lockgate.v1.Lock.$Shape): lockgate.v1.Lock & lockgate.v1.Lock.$Shape;
            static create(properties?: lockgate.v1.Lock.$Properties): lockgate.v1.Lock;

            /**
             * Encodes the specified Lock message. Does not implicitly {@link lockgate.v1.Lock.verify|verify} messages.
             * @param message Lock message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.Lock.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Lock message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.Lock & lockgate.v1.Lock.$Shape} Lock
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.Lock & lockgate.v1.Lock.$Shape;
        }

        namespace Lock {

            /** Properties of a Lock. */
            interface $Properties {

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Lock. */
            type $Shape = lockgate.v1.Lock.$Properties;
        }

        /**
         * Properties of a Siren.
         * @deprecated Use lockgate.v1.Siren.$Properties instead.
         */
        interface ISiren extends lockgate.v1.Siren.$Properties {
        }

        /** Represents a Siren. */
        class Siren {

            /**
             * Constructs a new Siren.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.Siren.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Siren seconds. */
            seconds: number;

            /**
             * Creates a new Siren instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Siren instance
             */
            static create(properties: lockgate.v1.Siren.$Shape): lockgate.v1.Siren & lockgate.v1.Siren.$Shape;
            static create(properties?: lockgate.v1.Siren.$Properties): lockgate.v1.Siren;

            /**
             * Encodes the specified Siren message. Does not implicitly {@link lockgate.v1.Siren.verify|verify} messages.
             * @param message Siren message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.Siren.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Siren message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.Siren & lockgate.v1.Siren.$Shape} Siren
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.Siren & lockgate.v1.Siren.$Shape;
        }

        namespace Siren {

            /** Properties of a Siren. */
            interface $Properties {

                /** Siren seconds */
                seconds?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Siren. */
            type $Shape = lockgate.v1.Siren.$Properties;
        }

        /**
         * Properties of a LocateGps.
         * @deprecated Use lockgate.v1.LocateGps.$Properties instead.
         */
        interface ILocateGps extends lockgate.v1.LocateGps.$Properties {
        }

        /** Represents a LocateGps. */
        class LocateGps {

            /**
             * Constructs a new LocateGps.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.LocateGps.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /**
             * Creates a new LocateGps instance using the specified properties.
             * @param [properties] Properties to set
             * @returns LocateGps instance
             */
            static create(properties: lockgate.v1.LocateGps.$Shape): lockgate.v1.LocateGps & lockgate.v1.LocateGps.$Shape;
            static create(properties?: lockgate.v1.LocateGps.$Properties): lockgate.v1.LocateGps;

            /**
             * Encodes the specified LocateGps message. Does not implicitly {@link lockgate.v1.LocateGps.verify|verify} messages.
             * @param message LocateGps message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.LocateGps.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a LocateGps message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.LocateGps & lockgate.v1.LocateGps.$Shape} LocateGps
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.LocateGps & lockgate.v1.LocateGps.$Shape;
        }

        namespace LocateGps {

            /** Properties of a LocateGps. */
            interface $Properties {

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a LocateGps. */
            type $Shape = lockgate.v1.LocateGps.$Properties;
        }

        /**
         * Properties of a LocateCell.
         * @deprecated Use lockgate.v1.LocateCell.$Properties instead.
         */
        interface ILocateCell extends lockgate.v1.LocateCell.$Properties {
        }

        /** Represents a LocateCell. */
        class LocateCell {

            /**
             * Constructs a new LocateCell.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.LocateCell.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /**
             * Creates a new LocateCell instance using the specified properties.
             * @param [properties] Properties to set
             * @returns LocateCell instance
             */
            static create(properties: lockgate.v1.LocateCell.$Shape): lockgate.v1.LocateCell & lockgate.v1.LocateCell.$Shape;
            static create(properties?: lockgate.v1.LocateCell.$Properties): lockgate.v1.LocateCell;

            /**
             * Encodes the specified LocateCell message. Does not implicitly {@link lockgate.v1.LocateCell.verify|verify} messages.
             * @param message LocateCell message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.LocateCell.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a LocateCell message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.LocateCell & lockgate.v1.LocateCell.$Shape} LocateCell
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.LocateCell & lockgate.v1.LocateCell.$Shape;
        }

        namespace LocateCell {

            /** Properties of a LocateCell. */
            interface $Properties {

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a LocateCell. */
            type $Shape = lockgate.v1.LocateCell.$Properties;
        }

        /**
         * Properties of a SetPower.
         * @deprecated Use lockgate.v1.SetPower.$Properties instead.
         */
        interface ISetPower extends lockgate.v1.SetPower.$Properties {
        }

        /** Absent settings stay unchanged. */
        class SetPower {

            /**
             * Constructs a new SetPower.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.SetPower.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** SetPower mode. */
            mode?: (lockgate.v1.Mode|null);

            /** SetPower rideTracking. */
            rideTracking?: (boolean|null);

            /** SetPower airplane. */
            airplane?: (boolean|null);

            /** SetPower recovery. */
            recovery?: (boolean|null);

            /** SetPower highWindow. */
            highWindow?: (lockgate.v1.HighWindow.$Properties|null);

            /**
             * Creates a new SetPower instance using the specified properties.
             * @param [properties] Properties to set
             * @returns SetPower instance
             */
            static create(properties: lockgate.v1.SetPower.$Shape): lockgate.v1.SetPower & lockgate.v1.SetPower.$Shape;
            static create(properties?: lockgate.v1.SetPower.$Properties): lockgate.v1.SetPower;

            /**
             * Encodes the specified SetPower message. Does not implicitly {@link lockgate.v1.SetPower.verify|verify} messages.
             * @param message SetPower message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.SetPower.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a SetPower message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.SetPower & lockgate.v1.SetPower.$Shape} SetPower
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.SetPower & lockgate.v1.SetPower.$Shape;
        }

        namespace SetPower {

            /** Properties of a SetPower. */
            interface $Properties {

                /** SetPower mode */
                mode?: (lockgate.v1.Mode|null);

                /** SetPower rideTracking */
                rideTracking?: (boolean|null);

                /** SetPower airplane */
                airplane?: (boolean|null);

                /** SetPower recovery */
                recovery?: (boolean|null);

                /** SetPower highWindow */
                highWindow?: (lockgate.v1.HighWindow.$Properties|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a SetPower. */
            type $Shape = lockgate.v1.SetPower.$Properties;
        }

        /**
         * Properties of a Reset.
         * @deprecated Use lockgate.v1.Reset.$Properties instead.
         */
        interface IReset extends lockgate.v1.Reset.$Properties {
        }

        /** Restart the modem. This is not a boot of the lock. */
        class Reset {

            /**
             * Constructs a new Reset.
             * @param [properties] Properties to set
             */
            constructor(properties?: lockgate.v1.Reset.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /**
             * Creates a new Reset instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Reset instance
             */
            static create(properties: lockgate.v1.Reset.$Shape): lockgate.v1.Reset & lockgate.v1.Reset.$Shape;
            static create(properties?: lockgate.v1.Reset.$Properties): lockgate.v1.Reset;

            /**
             * Encodes the specified Reset message. Does not implicitly {@link lockgate.v1.Reset.verify|verify} messages.
             * @param message Reset message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: lockgate.v1.Reset.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Reset message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {lockgate.v1.Reset & lockgate.v1.Reset.$Shape} Reset
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): lockgate.v1.Reset & lockgate.v1.Reset.$Shape;
        }

        namespace Reset {

            /** Properties of a Reset. */
            interface $Properties {

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Reset. */
            type $Shape = lockgate.v1.Reset.$Properties;
        }
    }
}
