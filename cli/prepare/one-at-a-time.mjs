// Makes sure that only one process of a clone installs or builds at a time. A second process waits, and then finds the
// work done.
//
// The lock is a folder with one file, whose name is the owner's process id. A process creates the folder under another
// name and renames it, so the lock always has an owner. Renaming onto a folder that has a file fails, so exactly one
// process gets the lock. If the owner has died, a process takes over by renaming the owner's file to its own id, which
// again succeeds for exactly one process.
import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { pathInClone, printProgress } from './workplace.mjs';

const lock = pathInClone('.prepare', 'lock');
const pollMs = 200;

/** Waits for the lock, runs `work`, and releases the lock. */
export async function oneAtATime(work) {
  await acquire();
  try {
    return await work();
  } finally {
    release();
  }
}

async function acquire() {
  for (let waited = false; !tryToAcquire(); waited = true) {
    if (!waited) printProgress(`Waiting for process ${owner()}, which is preparing this clone (it holds ${lock}).`);
    await pause(pollMs);
  }
}

function tryToAcquire() {
  const ownFolder = pathInClone('.prepare', `lock-${process.pid}`);
  mkdirSync(ownFolder, { recursive: true });
  writeFileSync(`${ownFolder}/${process.pid}`, '');
  if (succeeds(() => renameSync(ownFolder, lock))) return true;
  rmSync(ownFolder, { recursive: true });
  const previousOwner = owner();
  if (previousOwner === null || isAlive(previousOwner)) return false;
  return succeeds(() => renameSync(`${lock}/${previousOwner}`, `${lock}/${process.pid}`));
}

function release() {
  succeeds(() => rmSync(`${lock}/${process.pid}`));
  // Fails if another process has already replaced the empty folder by its own lock, which must stay.
  succeeds(() => rmdirSync(lock));
}

function owner() {
  let names = [];
  succeeds(() => {
    names = readdirSync(lock);
  });
  return names.length === 0 ? null : Number(names[0]);
}

function isAlive(pid) {
  // A dead process had the same id, which happens in containers that share a clone.
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/**
 * Whether an action on the lock's files succeeds. These errors mean that another process has created or removed the
 * files meanwhile; Windows reports EPERM where others report ENOTEMPTY.
 */
function succeeds(action) {
  try {
    action();
    return true;
  } catch (error) {
    if (['ENOENT', 'EEXIST', 'ENOTEMPTY', 'EPERM', 'ENOTDIR'].includes(error.code)) return false;
    throw error;
  }
}
