// Two terminals in one clone must not install or build over each other: one works, the other waits and finds it done.
//
// The lock is a folder that holds one file, named after its owner's process id. It is made aside and renamed into
// place, so it is never seen without an owner, and renaming onto a folder that holds a file fails: one wins. When the
// owner has died, taking over is renaming its file to one's own name, which again succeeds for exactly one process.
import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { at, say } from './workplace.mjs';

const lock = at('.prepare', 'lock');
const pollMs = 200;

/** Runs `work` while no other process of this clone is in here, waiting for its turn first. */
export async function oneAtATime(work) {
  await take();
  try {
    return await work();
  } finally {
    leave();
  }
}

async function take() {
  for (let waited = false; !tryToTake(); waited = true) {
    if (!waited) say(`Waiting for process ${owner()}, which is preparing this clone (it holds ${lock}).`);
    await pause(pollMs);
  }
}

function tryToTake() {
  const mine = at('.prepare', `lock-${process.pid}`);
  mkdirSync(mine, { recursive: true });
  writeFileSync(`${mine}/${process.pid}`, '');
  if (succeeds(() => renameSync(mine, lock))) return true;
  rmSync(mine, { recursive: true });
  const before = owner();
  if (before === null || isAlive(before)) return false;
  return succeeds(() => renameSync(`${lock}/${before}`, `${lock}/${process.pid}`));
}

function leave() {
  succeeds(() => rmSync(`${lock}/${process.pid}`));
  // Fails when somebody's lock is already in place of the emptied one, and then it is not ours to remove.
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
  // Our own id on the lock was left by a dead namesake, which happens in containers that share a clone.
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function succeeds(action) {
  try {
    action();
    return true;
  } catch (error) {
    if (['ENOENT', 'EEXIST', 'ENOTEMPTY', 'EPERM', 'ENOTDIR'].includes(error.code)) return false;
    throw error;
  }
}
