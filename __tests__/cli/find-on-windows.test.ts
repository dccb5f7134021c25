import { describe, expect, test } from "@jest/globals";
import { findOnWindows } from "../../lib/cli/find-on-windows.js";

/** As npm 10 and 11 write it for a program of a package. */
const NPM = String.raw`@ECHO off
GOTO start
:find_dp0
SET dp0=%~dp0
EXIT /b
:start
SETLOCAL
CALL :find_dp0
IF EXIST "%dp0%\node.exe" (
  SET "_prog=%dp0%\node.exe"
) ELSE (
  SET "_prog=node"
)
endLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & "%_prog%"  "%dp0%\..\prisma\build\index.js" %*
`;

const FILES: Readonly<Record<string, string>> = {
  "C:\\Windows\\whoami.exe": "",
  "C:\\app\\node_modules\\.bin\\prisma": "#!/bin/sh",
  "C:\\app\\node_modules\\.bin\\prisma.cmd": NPM,
  "C:\\app\\node_modules\\.bin\\report.bat": "@echo off",
  "C:\\app\\node_modules\\.bin\\notes.txt": "",
  "C:\\tools\\both.cmd": "",
  "C:\\Windows\\both.exe": "",
  "C:\\tools\\job.vbs": "",
  "C:\\my tools\\my.exe": "",
};

function find(command: string, more: Readonly<Record<string, string>> = {}): unknown {
  const env = { PATH: "C:\\tools;C:\\app\\node_modules\\.bin;;C:\\Windows", ...more };
  try {
    return findOnWindows(command, { env, isFile: (path) => path in FILES, read: (file) => FILES[file] ?? "" });
  } catch (error) {
    const { exitCode, message } = error as { readonly exitCode: number; readonly message: string };
    return [exitCode, message];
  }
}

describe("on Windows, before a lock is taken,", () => {
  test.each(["whoami", "whoami.exe", "both", "C:\\Windows\\whoami", "C:\\Windows\\whoami.exe", "C:\\my tools\\my"])(
    "%s is found, as Windows finds it",
    (command) => {
      expect(find(command)).toBeUndefined();
    },
  );

  test.each([
    ["nothing", "nothing was not found: give its path, or correct PATH"],
    ["C:\\Windows\\nothing", "C:\\Windows\\nothing was not found: correct its path"],
    ["notes", "notes was not found: give its path, or correct PATH"],
  ])("%s is not found, with the exit code 127", (command, message) => {
    expect(find(command)).toEqual([127, message]);
  });

  test.each([
    [
      "prisma",
      "C:\\app\\node_modules\\.bin\\prisma.cmd",
      "start what it starts: node C:\\app\\node_modules\\prisma\\build\\index.js",
    ],
    [
      "prisma.cmd",
      "C:\\app\\node_modules\\.bin\\prisma.cmd",
      "start what it starts: node C:\\app\\node_modules\\prisma\\build\\index.js",
    ],
    ["report", "C:\\app\\node_modules\\.bin\\report.bat", "start the program that it starts"],
    ["C:\\tools\\both.cmd", "C:\\tools\\both.cmd", "start the program that it starts"],
  ])("%s runs in a shell, and what to start instead is said, with the exit code 126", (command, file, instead) => {
    const why = "runs in a shell, and after a loss of the lock only the shell could be ended";
    expect(find(command)).toEqual([126, `${file} ${why}: ${instead}`]);
  });

  test("PATHEXT says what else could be meant", () => {
    expect(find("job")).toEqual([127, "job was not found: give its path, or correct PATH"]);
    expect(find("job", { PATHEXT: ".EXE;.VBS" })).toEqual([
      126,
      expect.stringMatching(/^C:\\tools\\job\.vbs runs in a shell.*start the program that runs \.vbs files/),
    ]);
  });
});
