import { type ChildProcess, spawn } from "node:child_process";

/**
 * Ends a child with this process, also one that is frozen. An exit hook is not enough: a process that is killed runs
 * none. So a second process waits for the end of a pipe that only we hold open, and the system closes it whichever
 * way we go.
 *
 * @returns what to call once the child has ended by itself.
 */
export function endWithThisProcess(child: ChildProcess): () => void {
  const pid = child.pid as number;
  const script = `process.stdin.resume().on("end",()=>{try{process.kill(${pid},"SIGKILL")}catch{}})`;
  const guard = spawn(process.execPath, ["-e", script], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  guard.unref();
  const pipe = guard.stdin as typeof guard.stdin & { unref?(): void };
  pipe.unref?.();
  const onExit = (): void => void child.kill("SIGKILL");
  process.on("exit", onExit);
  return () => {
    process.off("exit", onExit);
    guard.kill("SIGKILL");
  };
}
