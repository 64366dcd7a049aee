// A library to preload into PostgreSQL (LD_PRELOAD). In the folder named in FULL_DISK, which has PostgreSQL's data, it
// makes writes fail with ENOSPC, as on a full disk:
// - while the file `full-wal` is there, all writes to the write-ahead log (pg_wal), as on a file system that writes
//   each changed block to a new place;
// - while the file `full-data` is there, writes to all other files, if they make the file longer.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static bool exists(const char *folder, const char *name) {
  char path[4096];
  std::snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

// `end` is where the write ends in the file, or a negative number if it goes on from the file's present position.
static bool isFull(int descriptor, off_t end, size_t length) {
  const int before = errno;
  const char *folder = std::getenv("FULL_DISK");
  if (folder == nullptr) return false;
  const bool isWalFull = exists(folder, "full-wal"), isDataFull = exists(folder, "full-data");
  errno = before;
  if (!isWalFull && !isDataFull) return false;
  char link[64], name[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t read = readlink(link, name, sizeof name - 1);
  errno = before;
  if (read < 0) return false;
  name[read] = 0;
  // Sockets, pipes and shared memory are not on the disk.
  if (std::strncmp(name, folder, std::strlen(folder)) != 0) return false;
  if (std::strstr(name, "/pg_wal/") != nullptr) return isWalFull;
  if (!isDataFull) return false;
  struct stat file;
  if (fstat(descriptor, &file) != 0) return false;
  if (end < 0) end = lseek(descriptor, 0, SEEK_CUR) + static_cast<off_t>(length);
  errno = before;
  return end > file.st_size;
}

static ssize_t noSpace() {
  errno = ENOSPC;
  return -1;
}

static size_t lengthOf(const iovec *parts, int count) {
  size_t length = 0;
  for (int index = 0; index < count; ++index) length += parts[index].iov_len;
  return length;
}

static ssize_t writeAt(int descriptor, const void *bytes, size_t length, off_t offset) {
  if (isFull(descriptor, offset + static_cast<off_t>(length), length)) return noSpace();
  return syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

static ssize_t writePartsAt(int descriptor, const iovec *parts, int count, off_t offset) {
  const size_t length = lengthOf(parts, count);
  if (isFull(descriptor, offset + static_cast<off_t>(length), length)) return noSpace();
  // The system call takes the offset in two halves; on 64-bit systems the first has all of it.
  return syscall(SYS_pwritev, descriptor, parts, count, offset, 0L);
}

static int allocate(int descriptor, off_t offset, off_t length) {
  if (isFull(descriptor, offset + length, static_cast<size_t>(length))) return ENOSPC;
  const int before = errno;
  const int result = syscall(SYS_fallocate, descriptor, 0, offset, length) == 0 ? 0 : errno;
  errno = before;
  return result;
}

extern "C" {
ssize_t write(int descriptor, const void *bytes, size_t length) {
  if (isFull(descriptor, -1, length)) return noSpace();
  return syscall(SYS_write, descriptor, bytes, length);
}
ssize_t pwrite(int d, const void *bytes, size_t length, off_t offset) { return writeAt(d, bytes, length, offset); }
ssize_t pwrite64(int d, const void *bytes, size_t length, off_t offset) { return writeAt(d, bytes, length, offset); }
ssize_t pwritev(int d, const iovec *parts, int count, off_t offset) { return writePartsAt(d, parts, count, offset); }
ssize_t pwritev64(int d, const iovec *parts, int count, off_t offset) { return writePartsAt(d, parts, count, offset); }
int posix_fallocate(int d, off_t offset, off_t length) { return allocate(d, offset, length); }
int posix_fallocate64(int d, off_t offset, off_t length) { return allocate(d, offset, length); }
}
