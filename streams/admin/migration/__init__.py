"""Another number of shards: a deployment moves to new topics, under another prefix. What is done when: `migrate`.

Kafka can add partitions and not take any away, and either would send tenants to other shards while their state stays.
So the new layout is a new set of topics, and everything moves there, in this order:

mark     Each new state partition says that it is being filled, so that no scheduler serves it yet.
move     Each old shard is fenced, and its state partition says where it has moved: from then on it never changes.
         A scheduler that is still running has lost the shard; one that starts is told where to go.
policy   The policy in force is stated in the new policy topic.
fill     The rows of all old shards, resharded (`streams.core.resharding`), are written. What is there is compared with
         what has to be there and only the difference is written, so it does not matter how far an earlier try came.
sweep    What stood unread in the old inputs is copied to the new ones, each record with its key, value, headers, time
         and place of origin. How far that has come stands in the old state partition, in the same transaction.
prove    What the new shards will know is held against what the old ones knew, and the copies against the originals.
save     A checkpoint of each new shard is written, from which a replay begins.
open     In one transaction, all new state partitions stop saying that they are being filled.

It can be killed at any moment and run again. Who runs it last wins: all but the fencing is written under one
transactional id. Once it is open, running it again sweeps what producers and workers have sent to the old topics since.
"""
