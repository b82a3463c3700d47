#!/usr/bin/env node
// In the repository, unlike dist/: npm links a command only when its file is there at the installation.
import '../dist/cli.js';
