// A library to preload into a process (LD_PRELOAD). It makes fsync and fdatasync fail with EIO, as a dying disk does,
// as soon as the file named in FAILING_FSYNC exists. If FAILING_FSYNC_OF is set, only files whose names end with it are
// affected.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

static bool isAffected(int descriptor) {
  const char *end = std::getenv("FAILING_FSYNC_OF");
  if (end == nullptr) return true;
  char link[64], name[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, name, sizeof name);
  const std::string path(name, length < 0 ? 0 : static_cast<size_t>(length)), wanted(end);
  return path.size() >= wanted.size() && path.compare(path.size() - wanted.size(), wanted.size(), wanted) == 0;
}

static int syncOrFail(long number, int descriptor) {
  const char *file = std::getenv("FAILING_FSYNC");
  if (file != nullptr && syscall(SYS_faccessat, AT_FDCWD, file, F_OK) == 0 && isAffected(descriptor)) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(number, descriptor));
}

extern "C" int fsync(int descriptor) { return syncOrFail(SYS_fsync, descriptor); }
extern "C" int fdatasync(int descriptor) { return syncOrFail(SYS_fdatasync, descriptor); }
