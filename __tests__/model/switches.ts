import { HAND_OFF_SWITCHES } from "./hand-off-switches.js";
import { MUTEX_SWITCHES } from "./mutex-switches.js";
import { SHARED_SWITCHES } from "./shared-switches.js";
import type { Switch } from "./switch.js";

export const SWITCHES: readonly Switch[] = [...MUTEX_SWITCHES, ...HAND_OFF_SWITCHES, ...SHARED_SWITCHES];
