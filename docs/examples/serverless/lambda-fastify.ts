import awsLambdaFastify from '@fastify/aws-lambda';
import cookie from '@fastify/cookie';
import fastifySession from '@fastify/session';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import createPostgresStore from 'connect-pg-simple';
import session from 'express-session';
import { AppModule, pool } from './app.module.js';

const PostgresStore = createPostgresStore(session);
const store = new PostgresStore({ pool, pruneSessionInterval: false });

const adapter = new FastifyAdapter({ trustProxy: true }); // behind the gateway; else no session cookie is set
const app = await NestFactory.create<NestFastifyApplication>(AppModule, adapter);
await app.register(cookie);
await app.register(fastifySession, { secret: process.env.SESSION_SECRET ?? '', store });

const fastify = app.getHttpAdapter().getInstance();
export const handler = awsLambdaFastify(fastify); // before app.init()
await app.init();
await fastify.ready();
