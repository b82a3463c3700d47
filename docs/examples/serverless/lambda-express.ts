import type { RequestListener } from 'node:http';
import { configure } from '@codegenie/serverless-express';
import { NestFactory } from '@nestjs/core';
import createPostgresStore from 'connect-pg-simple';
import session from 'express-session';
import { AppModule, pool } from './app.module.js';

const PostgresStore = createPostgresStore(session);
const store = new PostgresStore({ pool, pruneSessionInterval: false });

const app = await NestFactory.create(AppModule);
app.use(
  session({ secret: process.env.SESSION_SECRET ?? '', store, resave: false, saveUninitialized: false }),
);
await app.init();

const express = app.getHttpAdapter().getInstance() as RequestListener;
// eslint-disable-next-line @typescript-eslint/no-unsafe-assignment -- its type is in @types/aws-lambda
export const handler = configure({ app: express });
