// Preloaded into a process (LD_PRELOAD), it lets fsync and fdatasync fail with EIO as soon as the file named in
// FAILING_FSYNC is there: what a dying disk does, as SQLite meets it. FAILING_FSYNC_OF, if it is set, is how the name
// of a file ends for which it does so; the others are synced.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

static bool isMeant(int descriptor) {
  const char *end = std::getenv("FAILING_FSYNC_OF");
  if (end == nullptr) return true;
  char link[64], name[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, name, sizeof name);
  const std::string path(name, length < 0 ? 0 : static_cast<size_t>(length)), wanted(end);
  return path.size() >= wanted.size() && path.compare(path.size() - wanted.size(), wanted.size(), wanted) == 0;
}

static int synced(long number, int descriptor) {
  const char *file = std::getenv("FAILING_FSYNC");
  if (file != nullptr && syscall(SYS_access, file, F_OK) == 0 && isMeant(descriptor)) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(number, descriptor));
}

extern "C" int fsync(int descriptor) { return synced(SYS_fsync, descriptor); }
extern "C" int fdatasync(int descriptor) { return synced(SYS_fdatasync, descriptor); }
