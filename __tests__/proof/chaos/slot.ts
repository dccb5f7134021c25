import type { FaultProxy } from "../../support/fault-proxy.js";
import type { Host } from "../../support/host-process.js";
import { startLockHost } from "../../support/lock-host.js";
import type { LockGroup } from "./lock-groups.js";
import type { WorkerConfig, WorkerMessage } from "./worker-messages.js";

/** A place in the fleet: one process at a time, and another when that has been killed. */
export class Slot {
  readonly tag: string;
  readonly group: LockGroup;
  /** All that have been in this place, the running one last. */
  readonly hosts: Host<WorkerMessage>[] = [];
  readonly #endpoint: string;
  readonly #config: Omit<WorkerConfig, "worker">;

  constructor(tag: string, proxy: FaultProxy, config: Omit<WorkerConfig, "worker">) {
    this.tag = tag;
    this.group = config.group;
    this.#endpoint = proxy.endpointFor(tag);
    this.#config = config;
    this.start();
  }

  get host(): Host<WorkerMessage> {
    return this.hosts.at(-1) as Host<WorkerMessage>;
  }

  /** Whether one of its sections was in the lock by what it last said. */
  get inSection(): boolean {
    return this.host.messages.findLast(({ kind }) => kind === "entered" || kind === "left")?.kind === "entered";
  }

  /** Whether it has killed itself, when it had handed its lock off. */
  get hasKilledItself(): boolean {
    return !this.host.running && this.host.messages.some((message) => message.kind === "handed off" && message.dies);
  }

  get sectionsEnded(): number {
    return this.hosts.reduce((sum, { messages }) => sum + messages.filter(({ kind }) => kind === "left").length, 0);
  }

  /** Starts a process unless one runs: a host may have been killed while it closed. */
  start(): void {
    if (this.hosts.at(-1)?.running) return;
    const config: WorkerConfig = { ...this.#config, worker: `${this.tag}.${this.hosts.length + 1}` };
    const program = new URL("./hosts/worker.js", import.meta.url);
    this.hosts.push(startLockHost<WorkerMessage>(program, { endpoint: this.#endpoint, config }));
  }
}
