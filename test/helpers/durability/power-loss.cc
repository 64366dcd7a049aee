// Preloaded into a process (LD_PRELOAD), it notes what each write to a file since that file's last fsync overwrote, so
// that a test can take those writes back after a kill: what a loss of power does to what only the system had.
//
// POWER_LOSS_FOLDER is the folder whose files are followed, POWER_LOSS_JOURNAL a folder for the notes: for each file,
// named by its inode, a record a write: offset, length of what was there, size of the file before (three 64-bit numbers
// of this machine's order), then what was there. An fsync that went well empties the file's notes. Beside them stands
// INODE.path with the file's name. SQLite's shared memory (-shm) is no file that anybody syncs, and is left out.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {

// One for all files: a write and its note must not be parted, nor an fsync and what it covers.
std::mutex turn;
// The name of a followed file, and where the notes of it are written; by inode.
struct Notes {
  std::string path;
  int file;
};
std::map<ino_t, Notes> *followed = nullptr;

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The file's name; empty where it isn't to be followed.
std::string followedPath(int descriptor) {
  const char *folder = std::getenv("POWER_LOSS_FOLDER");
  if (folder == nullptr) return "";
  char link[64], name[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, name, sizeof name);
  if (length <= 0) return "";
  const std::string path(name, static_cast<size_t>(length));
  const bool isInside = path.rfind(std::string(folder) + "/", 0) == 0;
  return isInside && !endsWith(path, "-shm") && !endsWith(path, " (deleted)") ? path : "";
}

// Begins notes on a file, in place of those of one that had this inode before.
int openNotes(ino_t inode, const std::string &path) {
  const std::string base = std::string(std::getenv("POWER_LOSS_JOURNAL")) + "/" + std::to_string(inode);
  const int named = open((base + ".path").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (named < 0) std::abort();
  if (syscall(SYS_write, named, path.data(), path.size()) != static_cast<long>(path.size())) std::abort();
  close(named);
  const int file = open((base + ".journal").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) std::abort();
  return file;
}

// The notes of the file behind the descriptor, and its size; -1 where it isn't followed. To be called in turn.
int notesOf(int descriptor, off_t *size) {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return -1;
  *size = status.st_size;
  const std::string path = followedPath(descriptor);
  if (path.empty()) return -1;
  if (followed == nullptr) followed = new std::map<ino_t, Notes>();
  const auto found = followed->find(status.st_ino);
  if (found != followed->end() && found->second.path == path) return found->second.file;
  if (found != followed->end()) close(found->second.file);
  const int file = openNotes(status.st_ino, path);
  (*followed)[status.st_ino] = Notes{path, file};
  return file;
}

// Notes what stands at this place. To be called in turn, before the write.
void note(int file, int descriptor, off_t offset, size_t length, off_t size) {
  const size_t kept = offset >= size ? 0 : static_cast<size_t>(std::min<off_t>(size - offset, length));
  std::vector<char> record(24 + kept);
  const int64_t head[3] = {offset, static_cast<int64_t>(kept), size};
  std::memcpy(record.data(), head, sizeof head);
  // The file may be open for writing alone.
  if (kept > 0) {
    char link[64];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const int reader = open(link, O_RDONLY | O_CLOEXEC);
    if (reader < 0 || pread(reader, record.data() + 24, kept, offset) != static_cast<ssize_t>(kept)) std::abort();
    close(reader);
  }
  if (syscall(SYS_write, file, record.data(), record.size()) != static_cast<long>(record.size())) std::abort();
}

int synced(long number, int descriptor) {
  const std::lock_guard<std::mutex> mine(turn);
  off_t size = 0;
  const int file = notesOf(descriptor, &size);
  const int result = static_cast<int>(syscall(number, descriptor));
  if (result == 0 && file >= 0 && syscall(SYS_ftruncate, file, 0L) != 0) std::abort();
  return result;
}

ssize_t written(int descriptor, const void *bytes, size_t length, off_t offset) {
  const std::lock_guard<std::mutex> mine(turn);
  off_t size = 0;
  const int file = notesOf(descriptor, &size);
  if (file >= 0) note(file, descriptor, offset, length, size);
  return syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

int truncated(int descriptor, off_t length) {
  const std::lock_guard<std::mutex> mine(turn);
  off_t size = 0;
  const int file = notesOf(descriptor, &size);
  if (file >= 0) note(file, descriptor, length, length < size ? static_cast<size_t>(size - length) : 0, size);
  return static_cast<int>(syscall(SYS_ftruncate, descriptor, length));
}

} // namespace

extern "C" {

int fsync(int descriptor) { return synced(SYS_fsync, descriptor); }
int fdatasync(int descriptor) { return synced(SYS_fdatasync, descriptor); }

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset) {
  return written(descriptor, bytes, length, offset);
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset) {
  return written(descriptor, bytes, length, offset);
}

int ftruncate(int descriptor, off_t length) { return truncated(descriptor, length); }
int ftruncate64(int descriptor, off64_t length) { return truncated(descriptor, length); }
}
