/* The agent's clock: real time until the fault, `scale` times as fast from there on.
 *
 * Loaded into the agent and into whatever it starts (LD_PRELOAD). One small file, which every process maps, says
 * whether and when the clock was switched; the supplier writes it, and REGCASE_CLOCK names it. With S the switch and
 * T the real time, both on CLOCK_MONOTONIC, all clocks of all processes are ahead of the real ones by
 *
 *     0 before S, (T - S) * (scale - 1) from S on
 *
 * so no clock ever jumps, and a process that is started later reads the same time as its parent.
 *
 * A wait is kept in the agent's time. Until the switch long waits are made of short ones, or a wait that had begun
 * before it would go on in real time. Not reached: static programs, raw system calls, kernel timers that were armed
 * before the switch, SO_RCVTIMEO, the kernel's own times (of files, of processes).
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define FOR_EVER (INT64_C(4) * SECOND * SECOND) /* 126 years, and no sum of two overflows */
#define SHORT_WAIT (SECOND / 50)

/* The layout is also in supplier/agent_clock.py. */
struct state {
    _Atomic int64_t switched;
    int64_t at_ns; /* valid once `switched` is not 0 */
    double scale;
};

static const struct state *state; /* NULL: there is no such clock, everything is passed on as it is */

#define REAL(name)                                                 \
    ({                                                             \
        static __typeof__(&name) found;                            \
        if (!found)                                                \
            found = (__typeof__(&name))dlsym(RTLD_NEXT, #name);    \
        found;                                                     \
    })

__attribute__((constructor)) static void open_state(void) {
    const char *path = getenv("REGCASE_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *found = mmap(NULL, sizeof *state, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (found != MAP_FAILED)
        state = found;
}

/* Times */

static int64_t ns_of(const struct timespec *time) {
    if (time->tv_sec < 0)
        return -1;
    if (time->tv_sec >= FOR_EVER / SECOND)
        return FOR_EVER;
    return time->tv_sec * SECOND + time->tv_nsec;
}

static struct timespec timespec_of(int64_t ns) {
    return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

static int64_t ns_of_timeval(const struct timeval *time) {
    struct timespec same = {.tv_sec = time->tv_sec, .tv_nsec = time->tv_usec * 1000};
    return ns_of(&same);
}

static bool runs_fast(void) {
    return state && atomic_load_explicit(&state->switched, memory_order_acquire);
}

static int64_t real_now(clockid_t clock) {
    struct timespec now = {0};
    REAL(clock_gettime)(clock, &now);
    return ns_of(&now);
}

static int64_t ahead(void) {
    if (!runs_fast())
        return 0;
    int64_t since = real_now(CLOCK_MONOTONIC) - state->at_ns;
    return since > 0 ? (int64_t)((double)since * (state->scale - 1)) : 0;
}

static int64_t agent_now(clockid_t clock) {
    return real_now(clock) + ahead();
}

static bool counts_time(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
    case CLOCK_TAI:
        return true;
    default: /* CPU time is the kernel's */
        return false;
    }
}

/* Which clock an absolute time is on, where the call does not say: they are decades apart. */
static clockid_t clock_of(int64_t moment) {
    return moment > agent_now(CLOCK_REALTIME) / 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = REAL(clock_gettime)(clock, time);
    if (result == 0 && counts_time(clock) && runs_fast())
        *time = timespec_of(ns_of(time) + ahead());
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    int result = REAL(gettimeofday)(time, zone);
    if (result == 0 && runs_fast()) {
        int64_t now = ns_of_timeval(time) + ahead();
        *time = (struct timeval){.tv_sec = now / SECOND, .tv_usec = now % SECOND / 1000};
    }
    return result;
}

time_t time(time_t *place) {
    time_t now = agent_now(CLOCK_REALTIME) / SECOND;
    if (place)
        *place = now;
    return now;
}

int timespec_get(struct timespec *time, int base) {
    int result = REAL(timespec_get)(time, base);
    if (result == TIME_UTC && runs_fast())
        *time = timespec_of(ns_of(time) + ahead());
    return result;
}

/* Waits. `until` is a moment of the agent's CLOCK_MONOTONIC. */

static int64_t until_of(int64_t timeout) {
    int64_t now = agent_now(CLOCK_MONOTONIC);
    return timeout > FOR_EVER - now ? FOR_EVER : now + timeout;
}

static bool is_past(int64_t until) {
    return agent_now(CLOCK_MONOTONIC) >= until;
}

/* How long to wait, really, before looking at the clock again. */
static int64_t next_wait(int64_t until) {
    int64_t left = until - agent_now(CLOCK_MONOTONIC);
    if (left <= 0)
        return 0;
    if (runs_fast())
        return (int64_t)((double)left / state->scale) + 1;
    return !state || left < SHORT_WAIT ? left : SHORT_WAIT;
}

static int sleep_until(int64_t until) {
    while (!is_past(until)) {
        struct timespec wait = timespec_of(next_wait(until));
        if (REAL(nanosleep)(&wait, NULL) != 0)
            return -1;
    }
    return 0;
}

static struct timespec left_until(int64_t until) {
    int64_t left = until - agent_now(CLOCK_MONOTONIC);
    return timespec_of(left > 0 ? left : 0);
}

static bool is_valid(const struct timespec *time) {
    return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < SECOND;
}

int nanosleep(const struct timespec *time, struct timespec *left) {
    if (!state || !is_valid(time))
        return REAL(nanosleep)(time, left);
    int64_t until = until_of(ns_of(time));
    int result = sleep_until(until);
    if (result != 0 && left)
        *left = left_until(until);
    return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    if (!state || !counts_time(clock) || !is_valid(time))
        return REAL(clock_nanosleep)(clock, flags, time, left);
    int64_t timeout = ns_of(time) - (flags & TIMER_ABSTIME ? agent_now(clock) : 0);
    int64_t until = until_of(timeout);
    int before = errno;
    int result = sleep_until(until) == 0 ? 0 : errno;
    errno = before;
    if (result != 0 && left && !(flags & TIMER_ABSTIME))
        *left = left_until(until);
    return result;
}

unsigned int sleep(unsigned int seconds) {
    struct timespec time = {.tv_sec = seconds}, left = {0};
    return nanosleep(&time, &left) == 0 ? 0 : (unsigned int)(left.tv_sec + (left.tv_nsec > 0));
}

int usleep(useconds_t useconds) {
    struct timespec time = timespec_of((int64_t)useconds * 1000);
    return nanosleep(&time, NULL);
}

static int poll_until(struct pollfd *files, nfds_t count, int64_t until, const sigset_t *mask) {
    for (;;) {
        struct timespec wait = timespec_of(next_wait(until));
        int ready = REAL(ppoll)(files, count, &wait, mask);
        if (ready != 0 || is_past(until))
            return ready;
    }
}

int poll(struct pollfd *files, nfds_t count, int timeout) {
    if (!state || timeout <= 0)
        return REAL(poll)(files, count, timeout);
    return poll_until(files, count, until_of(timeout * (SECOND / 1000)), NULL);
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    if (!state || !timeout || !is_valid(timeout))
        return REAL(ppoll)(files, count, timeout, mask);
    return poll_until(files, count, until_of(ns_of(timeout)), mask);
}

/* What programs that are built with _FORTIFY_SOURCE call instead. */
int __poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t size) {
    if (size / sizeof *files < count)
        abort();
    return poll(files, count, timeout);
}

int __ppoll_chk(
    struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t size) {
    if (size / sizeof *files < count)
        abort();
    return ppoll(files, count, timeout, mask);
}

static int select_until(int count, fd_set *sets[3], int64_t until, const sigset_t *mask) {
    size_t size = ((size_t)count + 8 * sizeof(long) - 1) / (8 * sizeof(long)) * sizeof(long);
    char asked[3][size ? size : 1];
    for (int i = 0; i < 3; i++)
        if (sets[i])
            memcpy(asked[i], sets[i], size);
    for (;;) {
        struct timespec wait = timespec_of(next_wait(until));
        int ready = REAL(pselect)(count, sets[0], sets[1], sets[2], &wait, mask);
        if (ready != 0 || is_past(until))
            return ready;
        for (int i = 0; i < 3; i++) /* a wait that ends without an event has emptied them */
            if (sets[i])
                memcpy(sets[i], asked[i], size);
    }
}

int select(
    int count, fd_set *restrict readers, fd_set *restrict writers, fd_set *restrict others,
    struct timeval *restrict timeout) {
    if (!state || !timeout || count < 0 || timeout->tv_sec < 0 || timeout->tv_usec < 0)
        return REAL(select)(count, readers, writers, others, timeout);
    int64_t until = until_of(ns_of_timeval(timeout));
    int ready = select_until(count, (fd_set *[]){readers, writers, others}, until, NULL);
    struct timespec left = left_until(until);
    *timeout = (struct timeval){.tv_sec = left.tv_sec, .tv_usec = left.tv_nsec / 1000};
    return ready;
}

int pselect(
    int count, fd_set *restrict readers, fd_set *restrict writers, fd_set *restrict others,
    const struct timespec *restrict timeout, const sigset_t *restrict mask) {
    if (!state || !timeout || count < 0 || !is_valid(timeout))
        return REAL(pselect)(count, readers, writers, others, timeout, mask);
    return select_until(count, (fd_set *[]){readers, writers, others}, until_of(ns_of(timeout)), mask);
}

static int epoll_until(int file, struct epoll_event *events, int most, int64_t until, const sigset_t *mask) {
    for (;;) {
        int64_t wait = (next_wait(until) + SECOND / 1000 - 1) / (SECOND / 1000);
        int ready = REAL(epoll_pwait)(file, events, most, wait < INT32_MAX ? (int)wait : INT32_MAX, mask);
        if (ready != 0 || is_past(until))
            return ready;
    }
}

int epoll_pwait(int file, struct epoll_event *events, int most, int timeout, const sigset_t *mask) {
    if (!state || timeout <= 0)
        return REAL(epoll_pwait)(file, events, most, timeout, mask);
    return epoll_until(file, events, most, until_of(timeout * (SECOND / 1000)), mask);
}

int epoll_wait(int file, struct epoll_event *events, int most, int timeout) {
    return epoll_pwait(file, events, most, timeout, NULL);
}

int epoll_pwait2(
    int file, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask) {
    if (!timeout)
        return epoll_pwait(file, events, most, -1, mask);
    return epoll_until(file, events, most, until_of(ns_of(timeout)), mask);
}

/* Semaphores and conditions; CPython waits for its locks with the former. */

int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict moment) {
    if (moment->tv_nsec < 0 || moment->tv_nsec >= SECOND) {
        errno = EINVAL;
        return -1;
    }
    int64_t until = until_of(ns_of(moment) - agent_now(clock));
    for (;;) {
        struct timespec wake = timespec_of(real_now(CLOCK_REALTIME) + next_wait(until));
        if (REAL(sem_timedwait)(semaphore, &wake) == 0)
            return 0;
        if (errno != ETIMEDOUT || is_past(until))
            return -1;
    }
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict moment) {
    if (!state || !is_valid(moment))
        return REAL(sem_timedwait)(semaphore, moment);
    return sem_clockwait(semaphore, CLOCK_REALTIME, moment);
}

/* The end of a short wait looks like a wake-up without a reason, which every caller has to expect: to wait again
 * here could miss a signal that came in between. */
static int condition_result(int result, int64_t until) {
    return result == ETIMEDOUT && !is_past(until) ? 0 : result;
}

int pthread_cond_timedwait(
    pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict moment) {
    if (!state || !is_valid(moment))
        return REAL(pthread_cond_timedwait)(condition, mutex, moment);
    clockid_t clock = clock_of(ns_of(moment));
    int64_t until = until_of(ns_of(moment) - agent_now(clock));
    struct timespec wake = timespec_of(real_now(clock) + next_wait(until));
    return condition_result(REAL(pthread_cond_timedwait)(condition, mutex, &wake), until);
}

int pthread_cond_clockwait(
    pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
    const struct timespec *restrict moment) {
    if (!state || !is_valid(moment))
        return REAL(pthread_cond_clockwait)(condition, mutex, clock, moment);
    int64_t until = until_of(ns_of(moment) - agent_now(clock));
    struct timespec wake = timespec_of(real_now(clock) + next_wait(until));
    return condition_result(REAL(pthread_cond_clockwait)(condition, mutex, clock, &wake), until);
}

/* Locks of Rust's and Abseil's own call the kernel, but through libc. */
static long futex_until(long *words, int command, int64_t until) {
    for (;;) {
        int64_t wake = next_wait(until);
        if (command == FUTEX_WAIT_BITSET)
            wake += real_now((int)words[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC);
        struct timespec real = timespec_of(wake);
        long result = REAL(syscall)(SYS_futex, words[0], words[1], words[2], &real, words[4], words[5]);
        if (result == 0 || errno != ETIMEDOUT || is_past(until))
            return result;
    }
}

long syscall(long number, ...) {
    long words[6];
    va_list all;
    va_start(all, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(all, long);
    va_end(all);
    const struct timespec *timeout = (const struct timespec *)words[3];
    int command = (int)words[1] & FUTEX_CMD_MASK;
    bool waits = number == SYS_futex && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET);
    if (!state || !waits || !timeout || !is_valid(timeout))
        return REAL(syscall)(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    int64_t left = ns_of(timeout);
    if (command == FUTEX_WAIT_BITSET)
        left -= agent_now((int)words[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC);
    return futex_until(words, command, until_of(left));
}

/* The kernel's timers: real ones, set for when the agent's time will have come. */

static int64_t real_span(int64_t span) {
    if (span <= 0 || !runs_fast())
        return span;
    int64_t real = (int64_t)((double)span / state->scale);
    return real > 1000 ? real : 1000; /* 0 would disarm it */
}

static struct timeval real_timeval(struct timeval span) {
    int64_t real = real_span(ns_of_timeval(&span));
    return (struct timeval){.tv_sec = real / SECOND, .tv_usec = real % SECOND / 1000};
}

static struct timeval agent_timeval(struct timeval span) {
    int64_t agent = ns_of_timeval(&span);
    if (runs_fast())
        agent = (int64_t)((double)agent * state->scale);
    return (struct timeval){.tv_sec = agent / SECOND, .tv_usec = agent % SECOND / 1000};
}

#ifdef __GLIBC__
typedef __itimer_which_t which_timer;
#else
typedef int which_timer;
#endif

int setitimer(which_timer which, const struct itimerval *restrict value, struct itimerval *restrict old) {
    if (!runs_fast() || which != ITIMER_REAL || !value)
        return REAL(setitimer)(which, value, old);
    struct itimerval real = {real_timeval(value->it_interval), real_timeval(value->it_value)};
    int result = REAL(setitimer)(which, &real, old);
    if (result == 0 && old)
        *old = (struct itimerval){agent_timeval(old->it_interval), agent_timeval(old->it_value)};
    return result;
}

unsigned int alarm(unsigned int seconds) {
    struct itimerval value = {.it_value = {.tv_sec = seconds}}, old = {0};
    setitimer(ITIMER_REAL, &value, &old);
    return (unsigned int)(old.it_value.tv_sec + (old.it_value.tv_usec > 0));
}

/* TIMER_ABSTIME and TFD_TIMER_ABSTIME are both 1. */
static struct itimerspec real_timer(const struct itimerspec *value, int *flags) {
    int64_t first = ns_of(&value->it_value);
    if (first > 0 && *flags & TIMER_ABSTIME) {
        first -= agent_now(clock_of(first));
        first = first > 0 ? first : 1;
        *flags &= ~TIMER_ABSTIME;
    }
    int64_t interval = ns_of(&value->it_interval);
    return (struct itimerspec){timespec_of(real_span(interval)), timespec_of(real_span(first))};
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict value, struct itimerspec *restrict old) {
    if (!runs_fast() || !value || !is_valid(&value->it_value) || !is_valid(&value->it_interval))
        return REAL(timer_settime)(timer, flags, value, old);
    struct itimerspec real = real_timer(value, &flags);
    return REAL(timer_settime)(timer, flags, &real, old);
}

int timerfd_settime(int file, int flags, const struct itimerspec *value, struct itimerspec *old) {
    if (!runs_fast() || !value || !is_valid(&value->it_value) || !is_valid(&value->it_interval))
        return REAL(timerfd_settime)(file, flags, value, old);
    flags &= ~TFD_TIMER_CANCEL_ON_SET;
    struct itimerspec real = real_timer(value, &flags);
    return REAL(timerfd_settime)(file, flags, &real, old);
}
