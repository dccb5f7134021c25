import { stopEngine } from "./global-setup.js";

export default stopEngine;
