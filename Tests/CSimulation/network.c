// TCP as pairs of local sockets: libcurl has one end, the simulated origins and receivers the other.
#include "internal.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum { descriptors = 4096, buffer_size = 32 << 10 };

static struct socket {
    int is_open, machine, peer, error, is_reset, is_connected;
    uint32_t address;
    uint16_t port, own_port;
} sockets[descriptors];

static struct csim_connection asked[descriptors];
static int asked_count;
static int generations[csim_machines];
static unsigned char owners[descriptors];   // the machines of descriptors
static uint16_t last_port = 30000;

int csim_generation(int machine) { return generations[machine]; }
static int (*resolver)(const char *, uint32_t *);

static struct socket *of(int descriptor) {
    return csim_is_on() && descriptor >= 0 && descriptor < descriptors && sockets[descriptor].is_open
        ? &sockets[descriptor] : NULL;
}

// MARK: The world's side

int csim_next_connection(struct csim_connection *connection) {
    if (asked_count == 0) return 0;
    *connection = asked[0];
    memmove(asked, asked + 1, sizeof *asked * (size_t)--asked_count);
    return 1;
}

// Until then the program's end is full, so that it cannot be written to.
void csim_accept(const struct csim_connection *connection) {
    char bytes[4096];
    while (recv(connection->peer, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {}
    struct socket *socket = of(connection->socket);
    if (socket && socket->peer == connection->peer) socket->is_connected = 1;
    csim_descriptors_changed();
}

void csim_refuse(const struct csim_connection *connection, int error) {
    struct socket *socket = of(connection->socket);
    if (socket && socket->peer == connection->peer) socket->error = error, socket->peer = -1;
    close(connection->peer);
    csim_descriptors_changed();
}

ssize_t csim_receive(int peer, void *bytes, size_t count) {
    ssize_t received = syscall(SYS_recvfrom, peer, bytes, count, MSG_DONTWAIT, NULL, NULL);
    if (received > 0) csim_descriptors_changed();
    if (received < 0 && errno == EAGAIN) return 0;
    return received == 0 ? -1 : received;
}

ssize_t csim_send(int peer, const void *bytes, size_t count) {
    ssize_t sent = syscall(SYS_sendto, peer, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
    csim_descriptors_changed();
    return sent < 0 && errno == EAGAIN ? 0 : sent;
}

void csim_hang_up(const struct csim_connection *connection, int resets) {
    struct socket *socket = of(connection->socket);
    if (socket && socket->peer == connection->peer) socket->is_reset = resets, socket->peer = -1;
    close(connection->peer);
    csim_descriptors_changed();
}

void csim_set_resolver(int (*resolve)(const char *, uint32_t *)) { resolver = resolve; }

void csim_network_closes(int descriptor) {
    if (descriptor >= 0 && descriptor < descriptors) owners[descriptor] = 0;
    struct socket *socket = of(descriptor);
    if (!socket) return;
    socket->is_open = 0;
    csim_descriptors_changed();
}

void csim_reset_network(int machine) {
    int kept = 0;
    for (int index = 0; index < asked_count; index++)
        if (asked[index].machine != machine) asked[kept++] = asked[index];
    asked_count = kept;
    generations[machine]++;
}

// MARK: Descriptors of machines

static int owned(int descriptor) {
    if (csim_is_on() && descriptor >= descriptors) csim_fail("open", "too many descriptors");
    if (csim_is_on() && descriptor >= 0) owners[descriptor] = (unsigned char)csim_machine();
    return descriptor;
}

void csim_disown(int descriptor) { owners[descriptor] = 0; }

static int open_at(int folder, const char *path, int flags, va_list list) {
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
    return owned((int)syscall(SYS_openat, folder, path, flags, mode));
}

#define OPEN(name, folder, ...) \
    EXPORT int name(__VA_ARGS__, ...) { \
        va_list list; \
        va_start(list, flags); \
        int descriptor = open_at(folder, path, flags, list); \
        va_end(list); \
        return descriptor; \
    }
OPEN(open, AT_FDCWD, const char *path, int flags)
OPEN(open64, AT_FDCWD, const char *path, int flags)
OPEN(openat, folder, int folder, const char *path, int flags)
OPEN(openat64, folder, int folder, const char *path, int flags)

EXPORT int epoll_create1(int flags) { return owned((int)syscall(SYS_epoll_create1, flags)); }

static int own_both(int result, const int pair[2]) {
    if (result == 0) owned(pair[0]), owned(pair[1]);
    return result;
}

EXPORT int pipe(int pair[2]) { return own_both((int)syscall(SYS_pipe2, pair, 0), pair); }

EXPORT int socketpair(int domain, int type, int protocol, int pair[2]) {
    return own_both((int)syscall(SYS_socketpair, domain, type, protocol, pair), pair);
}

EXPORT int eventfd(unsigned value, int flags) { return owned((int)syscall(SYS_eventfd2, value, flags)); }

// MARK: The program's side

EXPORT int socket(int domain, int type, int protocol) {
    if (!csim_is_on() || (domain != AF_INET && domain != AF_INET6))
        return (int)syscall(SYS_socket, domain, type, protocol);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) return -1;
    if (pair[0] >= descriptors) csim_fail("socketpair", "too many descriptors");
    int size = buffer_size;
    syscall(SYS_setsockopt, pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    syscall(SYS_setsockopt, pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    owned(pair[0]);
    csim_disown(pair[1]);
    sockets[pair[0]] = (struct socket){.is_open = 1, .machine = csim_machine(), .peer = pair[1], .own_port = ++last_port};
    return pair[0];
}

EXPORT int connect(int descriptor, const struct sockaddr *address, socklen_t length) {
    struct socket *socket = of(descriptor);
    if (!socket) return (int)syscall(SYS_connect, descriptor, address, length);
    const struct sockaddr_in *target = (const struct sockaddr_in *)address;
    if (address->sa_family != AF_INET) {
        errno = ENETUNREACH;
        return -1;
    }
    socket->address = ntohl(target->sin_addr.s_addr);
    socket->port = ntohs(target->sin_port);
    asked[asked_count++] = (struct csim_connection){
        descriptor, socket->peer, socket->address, socket->port, csim_machine(), generations[csim_machine()]};
    csim_descriptors_changed();
    char filler[4096] = {0};
    while (syscall(SYS_sendto, descriptor, filler, sizeof filler, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) > 0) {}
    errno = EINPROGRESS;
    return -1;
}

EXPORT ssize_t recv(int descriptor, void *bytes, size_t count, int flags) {
    struct socket *socket = of(descriptor);
    if (socket && socket->is_reset) {
        errno = ECONNRESET;
        return -1;
    }
    ssize_t received = syscall(SYS_recvfrom, descriptor, bytes, count, flags, NULL, NULL);
    if (socket && received > 0) csim_descriptors_changed();
    return received;
}

EXPORT ssize_t send(int descriptor, const void *bytes, size_t count, int flags) {
    struct socket *socket = of(descriptor);
    if (socket && socket->is_reset) {
        errno = ECONNRESET;
        return -1;
    }
    if (socket) csim_descriptors_changed();
    return syscall(SYS_sendto, descriptor, bytes, count, flags | MSG_NOSIGNAL, NULL, 0);
}

static int give_address(uint32_t address, uint16_t port, struct sockaddr *result, socklen_t *length) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
    memcpy(result, &own, *length < sizeof own ? *length : sizeof own);
    *length = sizeof own;
    return 0;
}

EXPORT int getpeername(int descriptor, struct sockaddr *restrict address, socklen_t *restrict length) {
    struct socket *socket = of(descriptor);
    if (!socket) return (int)syscall(SYS_getpeername, descriptor, address, length);
    if (socket->is_connected && !socket->is_reset) return give_address(socket->address, socket->port, address, length);
    errno = ENOTCONN;
    return -1;
}

EXPORT int getsockname(int descriptor, struct sockaddr *restrict address, socklen_t *restrict length) {
    struct socket *socket = of(descriptor);
    if (!socket) return (int)syscall(SYS_getsockname, descriptor, address, length);
    return give_address(0x0A0000FE, socket->own_port, address, length);
}

EXPORT int setsockopt(int descriptor, int level, int option, const void *value, socklen_t length) {
    if (of(descriptor)) return 0;
    return (int)syscall(SYS_setsockopt, descriptor, level, option, value, length);
}

EXPORT int getsockopt(int descriptor, int level, int option, void *restrict value, socklen_t *restrict length) {
    struct socket *socket = of(descriptor);
    if (!socket) return (int)syscall(SYS_getsockopt, descriptor, level, option, value, length);
    int result = level == SOL_SOCKET && option == SO_ERROR ? socket->is_reset ? ECONNRESET : socket->error : 0;
    if (level == SOL_SOCKET && option == SO_ERROR) socket->error = 0;
    memcpy(value, &result, *length < sizeof result ? *length : sizeof result);
    return 0;
}

EXPORT int eventfd_write(int descriptor, eventfd_t value) {
    if (csim_planted(csim_lose_event) && csim_below(csim_order, 100) == 0) return 0;
    return write(descriptor, &value, sizeof value) == sizeof value ? 0 : -1;
}

EXPORT int getaddrinfo(
    const char *restrict name, const char *restrict service, const struct addrinfo *restrict hints,
    struct addrinfo **restrict result
) {
    (void)service;
    if (!csim_is_on() || !csim_is_on_thread() || !resolver) csim_fail("getaddrinfo", name);
    csim_pause_until(csim_now() + (int64_t)csim_below(csim_delays, 80000000));
    uint32_t address = 0;
    int code = resolver(name, &address);
    if (code != 0) return code;
    struct addrinfo *found = calloc(1, sizeof *found + sizeof(struct sockaddr_in));
    struct sockaddr_in *place = (struct sockaddr_in *)(found + 1);
    place->sin_family = AF_INET;
    place->sin_addr.s_addr = htonl(address);
    found->ai_family = AF_INET;
    found->ai_socktype = hints ? hints->ai_socktype : SOCK_STREAM;
    found->ai_addrlen = sizeof *place;
    found->ai_addr = (struct sockaddr *)place;
    *result = found;
    return 0;
}

EXPORT void freeaddrinfo(struct addrinfo *list) { free(list); }

// MARK: The end of a process

void csim_bury(int machine) {
    csim_reset_server(machine);
    for (int descriptor = 0; descriptor < descriptors; descriptor++) {
        if (owners[descriptor] != machine) continue;
        // Nothing is sent to a program that has ended.
        if (sockets[descriptor].is_open && sockets[descriptor].peer >= 0) close(sockets[descriptor].peer);
        close(descriptor);
    }
    csim_reset_network(machine);
    csim_reset_threads(machine);
    csim_reset_timers(machine);
}
