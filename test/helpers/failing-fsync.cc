// Preloaded into a process (LD_PRELOAD), it lets fsync and fdatasync fail with EIO as soon as the file named in
// FAILING_FSYNC is there: what a dying disk does, as SQLite meets it.
#include <cerrno>
#include <cstdlib>
#include <sys/syscall.h>
#include <unistd.h>

static int synced(long number, int descriptor) {
  const char *file = std::getenv("FAILING_FSYNC");
  if (file != nullptr && syscall(SYS_access, file, F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(number, descriptor));
}

extern "C" int fsync(int descriptor) { return synced(SYS_fsync, descriptor); }
extern "C" int fdatasync(int descriptor) { return synced(SYS_fdatasync, descriptor); }
