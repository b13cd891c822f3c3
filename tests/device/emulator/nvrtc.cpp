// NVRTC for tests: `libnvrtc.so.13` that compiles a kernel text by `g++` for the processor of this machine.
//
// A program becomes a shared library that the emulator's driver loads. What CUDA C++ adds to C++ is in `device.h`; the two things that macros cannot
// say, dynamic shared memory and the list of kernels, are written here.
//
// Environment: MXNET_EMULATOR_CXX (g++).

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

extern char** environ;

typedef int Result;
enum { SUCCESS = 0, INVALID_OPTION = 5, COMPILATION = 6, INTERNAL_ERROR = 11 };

namespace {

const int ARCHITECTURES[] = {75, 80, 86, 87, 89, 90, 100, 103, 120};

struct Program {
    std::string source, log, image;
};

// The folder of this library, where `device.h` and its precompiled form lie.
std::string folder() {
    Dl_info info;
    dladdr((void*)&folder, &info);
    std::string path = info.dli_fname;
    return path.substr(0, path.rfind('/'));
}

std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

bool is_known(const std::string& option) {
    for (const char* name : {"--gpu-architecture=", "-arch="}) {
        if (option.rfind(name, 0) == 0) {
            std::string arch = option.substr(strlen(name));
            for (int known : ARCHITECTURES) {
                std::string number = std::to_string(known);
                if (arch == "sm_" + number || arch == "compute_" + number || arch == "sm_" + number + "a") return true;
            }
            return false;
        }
    }
    for (const char* name : {"--std=", "-std=", "--fmad=", "-fmad=", "--ftz=", "--prec-div=", "--prec-sqrt=", "--use_fast_math",
                             "-D", "--define-macro=", "--device-as-default-execution-space", "--generate-line-info", "-lineinfo",
                             "--extra-device-vectorization", "--restrict", "--no-source-include", "--disable-warnings", "-w",
                             "--minimal", "--ptxas-options", "--diag-suppress", "--split-compile"}) {
        if (option.rfind(name, 0) == 0) return true;
    }
    return false;
}

}  // namespace

EXPORT Result nvrtcVersion(int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return SUCCESS;
}

EXPORT Result nvrtcGetNumSupportedArchs(int* count) {
    *count = sizeof ARCHITECTURES / sizeof *ARCHITECTURES;
    return SUCCESS;
}

EXPORT Result nvrtcGetSupportedArchs(int* architectures) {
    memcpy(architectures, ARCHITECTURES, sizeof ARCHITECTURES);
    return SUCCESS;
}

EXPORT const char* nvrtcGetErrorString(Result result) {
    switch (result) {
        case SUCCESS: return "NVRTC_SUCCESS";
        case INVALID_OPTION: return "NVRTC_ERROR_INVALID_OPTION";
        case COMPILATION: return "NVRTC_ERROR_COMPILATION";
        default: return "NVRTC_ERROR_INTERNAL_ERROR";
    }
}

EXPORT Result nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                                 const char* const*) {
    *program = new Program{source, "", ""};
    return SUCCESS;
}

EXPORT Result nvrtcDestroyProgram(Program** program) {
    delete *program;
    *program = nullptr;
    return SUCCESS;
}

EXPORT Result nvrtcCompileProgram(Program* program, int count, const char* const* options) {
    std::vector<std::string> defines;
    for (int i = 0; i < count; ++i) {
        if (!is_known(options[i])) {
            program->log = std::string("unknown option ") + options[i];
            return INVALID_OPTION;
        }
        if (!strncmp(options[i], "-D", 2)) defines.push_back(options[i]);
    }
    char scratch[] = "/tmp/emulator-XXXXXX";
    if (!mkdtemp(scratch)) return INTERNAL_ERROR;
    std::string base = scratch, input = base + "/kernel.cpp", output = base + "/kernel.so", messages = base + "/log";

    static const std::regex dynamic(R"(extern\s+__shared__\s+(?:__align__\(\d+\)\s*)?([\w\s:]+?)\s*(\w+)\s*\[\s*\]\s*;)");
    static const std::regex kernel(R"(__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\()");
    std::string text =
        std::regex_replace(program->source, dynamic, "$1* $2 = ($1*)emulator::emulator_host->dynamic_shared;");
    {
        std::ofstream file(input);
        file << "#line 1 \"kernel.cu\"\n" << text << "\nnamespace emulator { extern \"C\" { Host* emulator_host; } }\n";
        // The preprocessor may choose one of several functions of a name.
        std::set<std::string> names;
        for (std::sregex_iterator it(text.begin(), text.end(), kernel), end; it != end; ++it) {
            std::string name = (*it)[1];
            if (!names.insert(name).second) continue;
            file << "extern \"C\" void emulator_run_" << name << "(void** p) { emulator::run(&" << name << ", p); }\n"
                 << "extern \"C\" unsigned int emulator_sizes_" << name
                 << "(const unsigned long** s) { return emulator::sizes_of(&" << name << ", s); }\n";
        }
    }
    const char* compiler = getenv("MXNET_EMULATOR_CXX");
    if (!compiler) compiler = "g++";
    std::vector<std::string> words = {compiler,  "-std=c++17", "-O0",  "-w", "-fPIC", "-ffp-contract=off", "-fno-exceptions",
                                      "-fno-rtti", "-fwrapv", "-fno-strict-aliasing",
                                      "-fno-gnu-unique", "-Winvalid-pch"};
    for (const auto& define : defines) words.push_back(define);
    for (const auto& word : {std::string("-include"), folder() + "/device.h", std::string("-shared"), std::string("-nostartfiles"), std::string("-o"), output, input})
        words.push_back(word);
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(&word[0]);
    arguments.push_back(nullptr);
    // The compiler itself must not see the emulator's libraries in the place of others.
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, messages.c_str(), O_WRONLY | O_CREAT, 0600);
    pid_t child;
    int status = 1;
    if (!posix_spawnp(&child, compiler, &actions, nullptr, arguments.data(), environ)) {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
    posix_spawn_file_actions_destroy(&actions);
    program->log = read(messages);
    bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (done) {
        std::string library = read(output);
        unsigned long long length = library.size();
        program->image = "MXEMU001" + std::string((const char*)&length, 8) + library;
    }
    for (const auto& path : {input, output, messages}) unlink(path.c_str());
    rmdir(scratch);
    return done ? SUCCESS : COMPILATION;
}

static Result size_of(const std::string& text, size_t* size) {
    *size = text.size();
    return SUCCESS;
}
static Result give(const std::string& text, char* where) {
    memcpy(where, text.data(), text.size());
    return SUCCESS;
}
EXPORT Result nvrtcGetCUBINSize(Program* program, size_t* size) { return size_of(program->image, size); }
EXPORT Result nvrtcGetCUBIN(Program* program, char* where) { return give(program->image, where); }
EXPORT Result nvrtcGetPTXSize(Program* program, size_t* size) { return size_of(program->image, size); }
EXPORT Result nvrtcGetPTX(Program* program, char* where) { return give(program->image, where); }
EXPORT Result nvrtcGetProgramLogSize(Program* program, size_t* size) {
    *size = program->log.size() + 1;
    return SUCCESS;
}
EXPORT Result nvrtcGetProgramLog(Program* program, char* where) {
    memcpy(where, program->log.c_str(), program->log.size() + 1);
    return SUCCESS;
}
