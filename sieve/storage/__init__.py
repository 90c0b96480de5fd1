"""Stores for index files on local disks, HDFS and S3: read, create if absent, list and delete."""
