/* A library that is loaded into a process (LD_PRELOAD) and lets one system call on a file below some folders fail, once.
 *
 * Calls on these files are counted from failing_arm on; the one of number `at` fails with `number`, the others do what they do.
 * A call that gives a descriptor makes later calls on that one count as well.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 65536
#define FOLDERS 8

static char folders[FOLDERS][1024];
static int many;
static char *names[FILES];
static char writes[FILES];
static atomic_long counter;
static long wanted = -1;
static int number;
static int armed;
static FILE *log_to;
static char failed[2048];

void failing_arm(const char *below, long at, int with, const char *log) {
    many = 0;
    for (const char *one = below; *one && many < FOLDERS; many++) {
        size_t length = strcspn(one, ":");
        snprintf(folders[many], sizeof folders[many], "%.*s", (int)length, one);
        one += length + (one[length] == ':');
    }
    counter = 0;
    wanted = at;
    number = with;
    failed[0] = 0;
    armed = 0;
    log_to = log && *log ? fopen(log, "w") : NULL;
    armed = 1;
}

void failing_disarm(void) { armed = 0; }
long failing_count(void) { return counter; }
const char *failing_failed(void) { return failed; }

static int ours(const char *path) {
    char whole[4096];
    if (!armed || !path) return 0;
    if (path[0] != '/') {
        if (!getcwd(whole, sizeof whole - 2)) return 0;
        size_t length = strlen(whole);
        snprintf(whole + length, sizeof whole - length, "/%s", path);
        path = whole;
    }
    for (int k = 0; k < many; k++) {
        size_t length = strlen(folders[k]);
        if (!strncmp(path, folders[k], length) && (path[length] == '/' || !path[length])) return 1;
    }
    return 0;
}

/* Whether this call is the one: sets errno. `kind`: r of reading, w of writing. */
static int fails(const char *call, char kind, const char *path) {
    long mine = atomic_fetch_add(&counter, 1);
    if (log_to) {
        fprintf(log_to, "%c %s %s\n", kind, call, path);
        fflush(log_to);
    }
    if (mine != wanted) return 0;
    snprintf(failed, sizeof failed, "%c %s %s", kind, call, path);
    errno = number;
    return 1;
}

static int of(int fd) { return armed && fd >= 0 && fd < FILES && names[fd] != NULL; }

static void keep(int fd, const char *path, int flags) {
    if (fd < 0 || fd >= FILES) return;
    free(names[fd]);
    names[fd] = strdup(path);
    writes[fd] = (flags & O_ACCMODE) != O_RDONLY;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        static int (*real)(const char *, int, ...); \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        mode_t mode = 0; \
        if (flags & (O_CREAT | __O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); } \
        if (!ours(path)) return real(path, flags, mode); \
        if (fails("open", (flags & O_ACCMODE) != O_RDONLY ? 'w' : 'r', path)) return -1; \
        int fd = real(path, flags, mode); \
        keep(fd, path, flags); \
        return fd; \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        static int (*real)(int, const char *, int, ...); \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        mode_t mode = 0; \
        if (flags & (O_CREAT | __O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); } \
        if ((at != AT_FDCWD && path[0] != '/') || !ours(path)) return real(at, path, flags, mode); \
        if (fails("open", (flags & O_ACCMODE) != O_RDONLY ? 'w' : 'r', path)) return -1; \
        int fd = real(at, path, flags, mode); \
        keep(fd, path, flags); \
        return fd; \
    }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name) \
    FILE *name(const char *path, const char *mode) { \
        REAL(name); \
        if (!ours(path)) return real(path, mode); \
        if (fails("fopen", mode[0] == 'r' ? 'r' : 'w', path)) return NULL; \
        return real(path, mode); \
    }
FOPEN(fopen)
FOPEN(fopen64)

int close(int fd) {
    REAL(close);
    if (of(fd)) {
        free(names[fd]);
        names[fd] = NULL;
    }
    return real(fd);
}

#define ON_FILE(type, name, kind, parameters, ...) \
    type name parameters { \
        REAL(name); \
        if (of(fd) && fails(#name, kind, names[fd])) return -1; \
        return real(__VA_ARGS__); \
    }
ON_FILE(ssize_t, read, 'r', (int fd, void *to, size_t size), fd, to, size)
ON_FILE(ssize_t, pread, 'r', (int fd, void *to, size_t size, off_t at), fd, to, size, at)
ON_FILE(ssize_t, pread64, 'r', (int fd, void *to, size_t size, off64_t at), fd, to, size, at)
ON_FILE(ssize_t, readv, 'r', (int fd, const struct iovec *to, int count), fd, to, count)
ON_FILE(ssize_t, write, 'w', (int fd, const void *from, size_t size), fd, from, size)
ON_FILE(ssize_t, pwrite, 'w', (int fd, const void *from, size_t size, off_t at), fd, from, size, at)
ON_FILE(ssize_t, pwrite64, 'w', (int fd, const void *from, size_t size, off64_t at), fd, from, size, at)
ON_FILE(ssize_t, writev, 'w', (int fd, const struct iovec *from, int count), fd, from, count)
ON_FILE(int, fstat, 'r', (int fd, struct stat *to), fd, to)
ON_FILE(int, fstat64, 'r', (int fd, struct stat64 *to), fd, to)
ON_FILE(int, ftruncate, 'w', (int fd, off_t size), fd, size)
ON_FILE(int, ftruncate64, 'w', (int fd, off64_t size), fd, size)

int fsync(int fd) {
    REAL(fsync);
    if (of(fd) && fails("fsync", 'w', names[fd])) return -1;
    return armed ? 0 : real(fd); /* slow, and of no interest here */
}

#define COPY(name) \
    ssize_t name(int to, int from, off_t *at, size_t size) { \
        REAL(name); \
        if (of(from) && fails(#name, 'r', names[from])) return -1; \
        if (of(to) && fails(#name, 'w', names[to])) return -1; \
        return real(to, from, at, size); \
    }
COPY(sendfile)
COPY(sendfile64)

#define ON_PATH(type, bad, name, kind, parameters, ...) \
    type name parameters { \
        REAL(name); \
        if (ours(path) && fails(#name, kind, path)) return bad; \
        return real(__VA_ARGS__); \
    }
ON_PATH(int, -1, stat, 'r', (const char *path, struct stat *to), path, to)
ON_PATH(int, -1, stat64, 'r', (const char *path, struct stat64 *to), path, to)
ON_PATH(int, -1, lstat, 'r', (const char *path, struct stat *to), path, to)
ON_PATH(int, -1, lstat64, 'r', (const char *path, struct stat64 *to), path, to)
ON_PATH(int, -1, access, 'r', (const char *path, int mode), path, mode)
ON_PATH(int, -1, mkdir, 'w', (const char *path, mode_t mode), path, mode)
ON_PATH(int, -1, rmdir, 'w', (const char *path), path)
ON_PATH(int, -1, unlink, 'w', (const char *path), path)
ON_PATH(ssize_t, -1, readlink, 'r', (const char *path, char *to, size_t size), path, to, size)
ON_PATH(int, -1, truncate, 'w', (const char *path, off_t size), path, size)

#define AT_PATH(name, kind, parameters, ...) \
    int name parameters { \
        REAL(name); \
        if ((at == AT_FDCWD || path[0] == '/') && ours(path) && fails(#name, kind, path)) return -1; \
        return real(__VA_ARGS__); \
    }
AT_PATH(fstatat, 'r', (int at, const char *path, struct stat *to, int flags), at, path, to, flags)
AT_PATH(fstatat64, 'r', (int at, const char *path, struct stat64 *to, int flags), at, path, to, flags)
AT_PATH(statx, 'r', (int at, const char *path, int flags, unsigned mask, struct statx *to), at, path, flags, mask, to)
AT_PATH(faccessat, 'r', (int at, const char *path, int mode, int flags), at, path, mode, flags)
AT_PATH(mkdirat, 'w', (int at, const char *path, mode_t mode), at, path, mode)
AT_PATH(unlinkat, 'w', (int at, const char *path, int flags), at, path, flags)
AT_PATH(utimensat, 'w', (int at, const char *path, const struct timespec times[2], int flags), at, path, times, flags)

int __xstat64(int version, const char *path, struct stat64 *to) {
    static int (*real)(int, const char *, struct stat64 *);
    if (!real) real = dlsym(RTLD_NEXT, "__xstat64");
    if (ours(path) && fails("stat", 'r', path)) return -1;
    return real(version, path, to);
}

int __lxstat64(int version, const char *path, struct stat64 *to) {
    static int (*real)(int, const char *, struct stat64 *);
    if (!real) real = dlsym(RTLD_NEXT, "__lxstat64");
    if (ours(path) && fails("lstat", 'r', path)) return -1;
    return real(version, path, to);
}

int __fxstat64(int version, int fd, struct stat64 *to) {
    static int (*real)(int, int, struct stat64 *);
    if (!real) real = dlsym(RTLD_NEXT, "__fxstat64");
    if (of(fd) && fails("fstat", 'r', names[fd])) return -1;
    return real(version, fd, to);
}

int rename(const char *path, const char *to) {
    REAL(rename);
    if (ours(to) && fails("rename", 'w', to)) return -1;
    return real(path, to);
}

int renameat(int from, const char *path, int at, const char *to) {
    REAL(renameat);
    if (ours(to) && fails("rename", 'w', to)) return -1;
    return real(from, path, at, to);
}

int link(const char *path, const char *to) {
    REAL(link);
    if (ours(to) && fails("link", 'w', to)) return -1;
    return real(path, to);
}

int linkat(int from, const char *path, int at, const char *to, int flags) {
    REAL(linkat);
    if (ours(to) && fails("link", 'w', to)) return -1;
    return real(from, path, at, to, flags);
}

/* Folders: what was opened is known by its descriptor. */
DIR *opendir(const char *path) {
    REAL(opendir);
    int mine = ours(path);
    if (mine && fails("opendir", 'r', path)) return NULL;
    DIR *folder = real(path);
    if (mine && folder) keep(dirfd(folder), path, O_RDONLY);
    return folder;
}

int closedir(DIR *folder) {
    REAL(closedir);
    int fd = dirfd(folder);
    if (of(fd)) {
        free(names[fd]);
        names[fd] = NULL;
    }
    return real(folder);
}

#define READDIR(name, type) \
    struct type *name(DIR *folder) { \
        REAL(name); \
        int fd = dirfd(folder); \
        if (of(fd) && fails("readdir", 'r', names[fd])) return NULL; \
        return real(folder); \
    }
READDIR(readdir, dirent)
READDIR(readdir64, dirent64)
