/**
 * A full disk of a PostgreSQL server: a library that is preloaded into the server makes its writes fail while a file
 * says so (full-disk.cc).
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { root } from '../../house/our-files.js';
import { type Teardown, tempFolder } from '../temp-folder.js';
import type { PostgresServer } from './server.js';

/**
 * Which disk is full, where the write-ahead log and the tables have different ones. Without room for the log PostgreSQL
 * ends; without room for tables it answers with an error (SQLSTATE 53100).
 */
export type DiskPart = 'wal' | 'data';

/** Builds the library; undefined if it can't be built, since it needs Linux and g++. */
export function buildFullDisk(test: Teardown): string | undefined {
  if (process.platform !== 'linux') return undefined;
  const folder = tempFolder(test);
  // PostgreSQL's user, who is not the tests' user if that is root, loads it.
  chmodSync(folder, 0o755);
  const library = path.join(folder, 'full-disk.so');
  const source = path.join(root, 'test/helpers/store/postgres/full-disk.cc');
  return spawnSync('g++', ['-shared', '-fPIC', '-O1', '-o', library, source]).status === 0 ? library : undefined;
}

/** Fills a disk of a server that was started with the library. */
export function fillServerDisk(server: PostgresServer, part: DiskPart): void {
  writeFileSync(fileOf(server, part), '');
}

/** Makes room on the disk again. */
export function freeServerDisk(server: PostgresServer, part: DiskPart): void {
  rmSync(fileOf(server, part), { force: true });
}

function fileOf({ folder }: PostgresServer, part: DiskPart): string {
  return path.join(folder, `full-${part}`);
}
