import { MUTEX_SWITCHES } from "./mutex-switches.js";
import type { Switch } from "./switch.js";

export const SWITCHES: readonly Switch[] = MUTEX_SWITCHES;
