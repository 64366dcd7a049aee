// The generators of code from the table of ping fields (proto/generate/), with rows that the table does not have yet:
// fields of a later version, which older locks don't send, carried by the close-connection ping too.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import ts from 'typescript';
import { JsonReader } from '../../../proto/json-reader.js';
import { root } from '../../helpers/house/our-files.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';
import { fullPing, PING_TYPES } from '../../helpers/wire/full-pings.js';

type Fields = readonly Readonly<Record<string, unknown>>[];
interface Table {
  readonly fields: Fields;
  readonly fieldsInTypeOrder: Fields;
}
type MakeText = (table: Table) => string;
type Members = Readonly<Record<string, unknown>>;

const generators = (name: string): Promise<Record<string, unknown>> =>
  import(pathToFileURL(path.join(root, 'proto/generate', `${name}.mjs`)).href);
const { loadFields } = (await generators('ping-table')) as { readonly loadFields: () => Promise<Table> };
const { pingJsonText } = (await generators('ping-json')) as { readonly pingJsonText: MakeText };
const { pingContentText } = (await generators('ping-content')) as { readonly pingContentText: MakeText };

/** The row of a temperature in whole degrees. */
function temperatureRow(numbers: Readonly<Record<string, number>>) {
  return {
    ...{ property: 'temperatureDegrees', json: 'temperature', presence: 'optional', isReproduced: false },
    ...{ wire: { name: 'temperature_degrees', numbers }, value: { kind: 'number', perUnit: 1, signed: true } },
    ...{ label: 'temperature', unit: ' °C', line: null, doc: 'The temperature.', plausible: { min: -60, max: 120 } },
  };
}

/** Compiles generated code as if it were a file of proto/gen, and loads it. */
async function load(t: Test, text: string): Promise<Record<string, unknown>> {
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  const gen = pathToFileURL(path.join(root, 'dist/proto/gen/')).href;
  const code = outputText.replaceAll(/from '(\.[^']+)'/g, (_, name: string) => `from '${new URL(name, gen).href}'`);
  const file = path.join(tempFolder(t), 'generated.mjs');
  writeFileSync(file, code);
  return (await import(pathToFileURL(file).href)) as Record<string, unknown>;
}

const CARRIERS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'all types': { cellular: 10, gps: 11, close_connection: 3 },
  'close-connection pings alone': { close_connection: 3 },
  'GPS and close-connection pings': { gps: 11, close_connection: 3 },
};

for (const [carriers, numbers] of Object.entries(CARRIERS))
  t.test(`an optional field of ${carriers} is read, may be missing, and has its range`, async (t) => {
    const { fields, fieldsInTypeOrder } = await loadFields();
    const row = temperatureRow(numbers);
    const table = { fields: [...fields, row], fieldsInTypeOrder: [...fieldsInTypeOrder, row] };
    const { pingToJson, readPing } = (await load(t, pingJsonText(table))) as {
      readonly pingToJson: (ping: Members) => Members;
      readonly readPing: (reader: JsonReader, json: Members, name: string) => Members;
    };
    const { isPlausiblePing } = (await load(t, pingContentText(table))) as {
      readonly isPlausiblePing: (ping: Members) => boolean;
    };
    for (const type of PING_TYPES) {
      const older = fullPing(type) as unknown as Members;
      const reader = new JsonReader();
      t.same(readPing(reader, pingToJson(older), 'ping'), older, `${type}: an older lock's ping lacks it`);
      t.equal(reader.error, null, type);
      t.ok(isPlausiblePing(older), `${type}: without it`);
      if (numbers[type] === undefined) continue;
      const ping = { ...older, temperatureDegrees: -12 };
      t.match(pingToJson(ping), { temperature: -12 }, `${type}: in JSON`);
      t.same(readPing(reader, pingToJson(ping), 'ping'), ping, `${type}: with it`);
      t.ok(isPlausiblePing(ping), `${type}: in its range`);
      t.notOk(isPlausiblePing({ ...older, temperatureDegrees: 121 }), `${type}: beyond its range`);
    }
  });
