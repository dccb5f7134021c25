/**
 * One instance of a Nest application that runs several times, with a job of `@nestjs/schedule`. `node host.js NAME`
 *
 * Every instance calls the method each second, and one of them runs it. The tick is a period of the table's clock, so the clocks of the hosts
 * may differ.
 */

import { subscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Cron, ScheduleModule } from "@nestjs/schedule";
import type { Diagnostics, Lock } from "dynamutex";
import { HeldLock, LockModule, OncePer } from "dynamutex/nestjs";

const host = process.argv[2] ?? "a";

@Injectable()
class Invoices {
  @Cron("* * * * * *")
  @OncePer(1_000, { name: "send-invoices" })
  async send(@HeldLock() lock?: Lock): Promise<void> {
    console.log(`${host} runs ${new Date(lock?.tick ?? 0).toISOString()}`);
    await sleep(50, undefined, { signal: lock?.signal });
  }
}

@Module({
  imports: [
    ScheduleModule.forRoot(),
    LockModule.forRoot({ tableName: process.env.TABLE_NAME ?? "locks", owner: host, ttlMs: 4_000 }),
  ],
  providers: [Invoices],
})
class AppModule {}

subscribe("dynamutex:missed", (message) => {
  const { reason, holder } = message as Diagnostics["dynamutex:missed"];
  console.log(`${host} left it to ${holder?.owner ?? "its own last run"}: ${reason}`);
});

async function bootstrap(): Promise<void> {
  const application = await NestFactory.createApplicationContext(AppModule, { logger: ["warn", "error"] });
  // SIGTERM ends the schedule, drains the locks, and then the process.
  application.enableShutdownHooks();
}

void bootstrap();
