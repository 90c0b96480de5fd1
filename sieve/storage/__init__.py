"""Object storage for index files: read, create if absent, list, delete; local, HDFS and S3."""
