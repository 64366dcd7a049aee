// A library to preload into a process (LD_PRELOAD). For each write to a file since that file's last fsync, it records
// the bytes that the write overwrote, so that a test can undo the writes after a kill. A loss of power has this effect:
// bytes that only the operating system had are lost.
//
// POWER_LOSS_FOLDER is the folder whose files are recorded, POWER_LOSS_JOURNAL the folder for the records. For each
// file, INODE.journal has a record for each write: offset, length of the old bytes, size of the file before (three
// 64-bit numbers in this machine's byte order), then the old bytes. A successful fsync empties the journal. INODE.path
// has the file's path. SQLite's shared memory (-shm) is not recorded, since it is never synced. SQLite changes its
// other files only by pwrite and ftruncate, so no other calls are replaced.
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

// One mutex for all files. A thread holds it during a write and its record, and during an fsync and the emptying of the
// journal, so that no other thread writes in between.
std::mutex mutex;
// The path of a recorded file, and the descriptor of its journal.
struct Journal {
  std::string path;
  int file;
};
// The journals of this process, by the inode of the recorded file.
std::map<ino_t, Journal> *journals = nullptr;

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The path of the file behind the descriptor; empty if the file is not recorded.
std::string recordedPath(int descriptor) {
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

// Creates the journal of a file, and replaces a journal of an earlier file with the same inode. Returns its descriptor.
int openJournal(ino_t inode, const std::string &path) {
  const std::string base = std::string(std::getenv("POWER_LOSS_JOURNAL")) + "/" + std::to_string(inode);
  const int named = open((base + ".path").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (named < 0) std::abort();
  if (syscall(SYS_write, named, path.data(), path.size()) != static_cast<long>(path.size())) std::abort();
  close(named);
  const int file = open((base + ".journal").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) std::abort();
  return file;
}

// The journal of the file behind the descriptor, and the file's size; -1 if the file is not recorded. The caller must
// hold the mutex.
int journalOf(int descriptor, off_t *size) {
  // A socket or a pipe is not recorded.
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return -1;
  *size = status.st_size;
  const std::string path = recordedPath(descriptor);
  if (path.empty()) return -1;
  if (journals == nullptr) journals = new std::map<ino_t, Journal>();
  const auto found = journals->find(status.st_ino);
  if (found != journals->end() && found->second.path == path) return found->second.file;
  // The file was deleted, and another one has its inode.
  if (found != journals->end()) close(found->second.file);
  const int file = openJournal(status.st_ino, path);
  (*journals)[status.st_ino] = Journal{path, file};
  return file;
}

// The length of a record's header: offset, length of the old bytes, size of the file.
constexpr size_t header_bytes = 3 * sizeof(int64_t);

// Records the bytes that a write will overwrite. The caller must hold the mutex.
void recordOldBytes(int file, int descriptor, off_t offset, size_t length, off_t size) {
  const size_t old_length = offset >= size ? 0 : static_cast<size_t>(std::min<off_t>(size - offset, length));
  std::vector<char> record(header_bytes + old_length);
  const int64_t head[3] = {offset, static_cast<int64_t>(old_length), size};
  std::memcpy(record.data(), head, sizeof head);
  // The descriptor may not allow reading, so the file is opened again.
  if (old_length > 0) {
    char link[64];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const int reader = open(link, O_RDONLY | O_CLOEXEC);
    const ssize_t expected = static_cast<ssize_t>(old_length);
    if (reader < 0 || pread(reader, record.data() + header_bytes, old_length, offset) != expected) std::abort();
    close(reader);
  }
  if (syscall(SYS_write, file, record.data(), record.size()) != static_cast<long>(record.size())) std::abort();
}

// Calls fsync or fdatasync, by its number, and empties the journal if the call succeeds.
int syncFile(long number, int descriptor) {
  const std::lock_guard<std::mutex> lock(mutex);
  off_t size = 0;
  const int file = journalOf(descriptor, &size);
  const int result = static_cast<int>(syscall(number, descriptor));
  if (result == 0 && file >= 0 && syscall(SYS_ftruncate, file, 0L) != 0) std::abort();
  return result;
}

ssize_t writeFile(int descriptor, const void *bytes, size_t length, off_t offset) {
  const std::lock_guard<std::mutex> lock(mutex);
  off_t size = 0;
  const int file = journalOf(descriptor, &size);
  if (file >= 0) recordOldBytes(file, descriptor, offset, length, size);
  return syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

int truncateFile(int descriptor, off_t length) {
  const std::lock_guard<std::mutex> lock(mutex);
  off_t size = 0;
  const int file = journalOf(descriptor, &size);
  if (file >= 0) recordOldBytes(file, descriptor, length, length < size ? static_cast<size_t>(size - length) : 0, size);
  return static_cast<int>(syscall(SYS_ftruncate, descriptor, length));
}

} // namespace

extern "C" {

int fsync(int descriptor) { return syncFile(SYS_fsync, descriptor); }
int fdatasync(int descriptor) { return syncFile(SYS_fdatasync, descriptor); }

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset) {
  return writeFile(descriptor, bytes, length, offset);
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset) {
  return writeFile(descriptor, bytes, length, offset);
}

int ftruncate(int descriptor, off_t length) { return truncateFile(descriptor, length); }
int ftruncate64(int descriptor, off64_t length) { return truncateFile(descriptor, length); }
}
