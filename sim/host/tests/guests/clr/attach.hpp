// A process attaches a profiler to itself: the command of the runtime's diagnostic port, which real CLRs have.
#ifndef ATTACH_HPP
#define ATTACH_HPP

#include "guest.hpp"

#ifndef _WIN32
#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#endif

#include <cstdlib>

namespace guest {

#ifdef _WIN32
inline int attach_to_itself(const char *) { return -1; }
#else
/// Returns the socket of the process's diagnostic port, connected, or -1.
inline int diagnostic_port() {
    const char *folder = std::getenv("TMPDIR");
    std::string in = folder ? folder : "/tmp";
    std::string begin = "dotnet-diagnostic-" + std::to_string(getpid()) + "-";
    int port = -1;
    DIR *entries = opendir(in.c_str());
    for (dirent *entry; entries && port < 0 && (entry = readdir(entries));) {
        if (std::string(entry->d_name).compare(0, begin.size(), begin) != 0) continue;
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        std::string path = in + "/" + entry->d_name;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        port = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(port, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0) continue;
        close(port);
        port = -1;
    }
    if (entries) closedir(entries);
    return port;
}

/// Attaches the library at a path, and returns the HRESULT of the command.
inline int attach_to_itself(const char *path) {
    std::string body;
    auto put = [&body](const void *bytes, size_t size) { body.append(static_cast<const char *>(bytes), size); };
    auto number = [&put](uint32_t value) { put(&value, 4); };
    number(60000);
    GUID any = {0x3c2a5b7e, 0x6d0f, 0x4f0e, {0x9c, 0x51, 0x0a, 0x6b, 0x9d, 0x3f, 0x2c, 0x11}};
    put(&any, sizeof any);
    std::string name = path;
    number(static_cast<uint32_t>(name.size()) + 1);
    for (size_t index = 0; index <= name.size(); index++) {
        WCHAR unit = static_cast<unsigned char>(name.c_str()[index]);
        put(&unit, sizeof unit);
    }
    // No client data.
    number(0);
    char magic[14] = "DOTNET_IPC_V1";
    uint16_t size = static_cast<uint16_t>(20 + body.size()), reserved = 0;
    // The command AttachProfiler of the set Profiler.
    uint8_t command[2] = {3, 1};
    std::string message(magic, sizeof magic);
    message.append(reinterpret_cast<char *>(&size), 2).append(reinterpret_cast<char *>(command), 2);
    message.append(reinterpret_cast<char *>(&reserved), 2).append(body);
    int port = diagnostic_port();
    if (port < 0 || write(port, message.data(), message.size()) != static_cast<ssize_t>(message.size())) return -1;
    char answer[24] = {};
    size_t got = 0;
    for (ssize_t more; got < sizeof answer && (more = read(port, answer + got, sizeof answer - got)) > 0;) got += more;
    close(port);
    int result = -1;
    if (got == sizeof answer) std::memcpy(&result, answer + 20, 4);
    return result;
}
#endif

} // namespace guest

#endif
